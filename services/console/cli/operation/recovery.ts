/**
 * `di recovery list` shows what a Postgres that was put back has forgotten, `di recovery apply`
 * takes over exactly what was shown.
 */
import { type Answer, command, group, read } from '../commands.ts'
import { CliError } from '../context.ts'

type Recovery = Answer<'/recovery'>
type Recovered = Answer<'/recovery', 'post'>
type State = Recovery['tenants'][number]['directory']

/** Ten thousand tenants take about a minute. */
const applyMaxMs = 600_000

export const recovery = group(
  'recovery',
  'what Postgres has forgotten after it was put back to an earlier state',
  [
    read('list', 'show it, with the command that takes it over', '/recovery', { text: toText }),
    command(
      'apply <digest>',
      'take over what `di recovery list` has shown under this digest',
      [],
      async (context, [digest]) => {
        const options = { timeoutMs: applyMaxMs }
        const done = await context.adminFetch('POST', '/recovery', { digest }, options)
        context.out(done as Recovered, toDoneText)
        const left = count((await context.adminFetch('GET', '/recovery')) as Recovery)
        if (left === 0) return
        throw new CliError(`${left} more are to be recovered: run \`di recovery list\` again.`)
      },
    ),
  ],
)

const count = ({ tenants, api_keys, webhooks, erasures }: Recovery) =>
  tenants.length + api_keys.length + webhooks.length + erasures.length

const toStateText = ({ epoch, status, policy_version: policy, hmac_last4: last4 }: State) =>
  `epoch ${epoch}, ${status}, policy ${policy}, HMAC secret ${last4 === null ? 'none' : `...${last4}`}`

function toText(recovery: Recovery): string {
  if (count(recovery) === 0) return 'Nothing is to be recovered.'
  const lines = [
    ...recovery.tenants.map(
      ({ tenant_id: slug, directory, postgres }) =>
        `tenant ${slug}: Postgres has ${postgres === null ? 'nothing' : toStateText(postgres)}; ` +
        `the edges have ${toStateText(directory)}`,
    ),
    ...recovery.api_keys.map(
      ({ tenant_id: slug, last4 }) => `API key ...${last4} of ${slug} was retired: retire it again`,
    ),
    ...recovery.webhooks.map(
      ({ tenant_id: slug }) => `webhook of ${slug} has a replaced secret: pause it`,
    ),
    ...recovery.erasures.map(
      ({ tenant_id: slug, subject, sha256, started_at: at }) =>
        `${subject} ${sha256.slice(0, 12)} of ${slug} was erased at ${at}: erase it again`,
    ),
  ]
  return [...lines, '', `To take all of it over: di recovery apply ${recovery.digest}`].join('\n')
}

const toDoneText = ({ tenants, api_keys: keys, webhooks, erasures }: Recovered) =>
  `${tenants} tenants recovered, ${keys} API keys retired, ${webhooks} webhooks paused, ` +
  `${erasures} erasures to be repeated.`
