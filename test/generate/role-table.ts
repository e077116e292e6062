/** The table of roles by endpoint for readers, from the table that is in force. */
import { type EndpointAccess, endpointAccess } from '#shared/core/operators/roles.ts'
import { describeAdminApi } from '../support/http/describe-admin-api.ts'
import { toMarkdown } from './markdown-table.ts'

type Operation = { summary?: string }

const head = `<!-- Made by \`npm run generate\` from roles.ts and the admin API: do not edit. -->

# Who may call which endpoint

Roles are in \`shared/core/operators/roles.ts\`. Paths are below \`/admin/v1\`. A role may do what those before it may:
viewer, analyst, engineer, admin. The bearer of \`ADMIN_TOKEN\` may call all but those of a session.

- **anyone**: no session is needed; the endpoint checks what it is sent.
- **session**: every signed-in operator, for their own account.
- **step-up**: the password, a code or the identity provider again, within ten minutes.
- **all tenants**: refused to operators who are limited to some tenants.
- **four eyes**: where the tenant wants it, another administrator approves a proposal instead.
  Bulk changes need that above a number of alerts.
`

/** @returns the text of `services/console/ROLES.md` */
export async function renderRoleTable(): Promise<string> {
  const document = await describeAdminApi()
  const rows = Object.entries(endpointAccess).map(([name, access]) => {
    const [method = '', path = ''] = name.split(' ')
    const documented = document.paths?.[`/admin/v1${path.replaceAll(/:(\w+)/g, '{$1}')}`]
    const operation = (documented as Record<string, Operation> | undefined)?.[method.toLowerCase()]
    return [
      `\`${name}\``,
      toLeast(access),
      toNeeds(access),
      operation?.summary ?? 'The OpenAPI document of the admin API',
    ]
  })
  return `${head}\n${toMarkdown(['endpoint', 'least role', 'also needs', 'what it does'], rows)}\n`
}

const toLeast = ({ who }: EndpointAccess): string => (who === 'public' ? 'anyone' : who)

function toNeeds(access: EndpointAccess): string {
  const stepUp = 'stepUp' in access && access.stepUp === true
  const allTenants = 'allTenants' in access && access.allTenants === true
  const guarded = 'guarded' in access && access.guarded !== undefined
  return [
    ...(stepUp ? ['step-up'] : []),
    ...(allTenants ? ['all tenants'] : []),
    ...(guarded ? ['four eyes'] : []),
  ].join(', ')
}
