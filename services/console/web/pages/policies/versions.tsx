/** Every version of a policy with who and when; one beside it, compared with any other. */
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { findChanges } from '#shared/core/policies/policy-changes.ts'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { CodeEditor } from '../../components/editor/code-editor.tsx'
import { controlClasses } from '../../components/field.tsx'
import { Id } from '../../components/id.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Loaded, Skeleton } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { useFourEyes } from '../proposals/proposals.ts'
import { Propose } from '../proposals/propose.tsx'
import { ChangeList } from './changes.tsx'
import { ReasonField, usePublish } from './drafts/publish.tsx'
import { toText } from './policy-document.ts'

type Version = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy/versions', 'get'>['data'][number]
type Shown = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy', 'get'>

const versionsMax = 500

const columns: Column<Version>[] = [
  {
    id: 'version',
    head: 'Version',
    numeric: true,
    width: '4.5rem',
    cell: ({ version }) => version,
  },
  {
    id: 'name',
    head: 'Name',
    cell: ({ name, in_force: inForce }) => (
      <span className="flex items-center gap-2">
        <span className="truncate">{name}</span>
        {inForce && <Badge tone="good">in force</Badge>}
      </span>
    ),
  },
  {
    id: 'why',
    head: 'Reason',
    width: '26%',
    cell: ({ reason }) => <span title={reason ?? undefined}>{reason}</span>,
  },
  { id: 'who', head: 'By', width: '20%', cell: ({ created_by: by }) => by },
  { id: 'when', head: 'When', width: '7.5rem', cell: ({ created_at: at }) => <Time at={at} /> },
]

const useVersions = (tenant: string) =>
  useQuery({
    queryKey: ['policy', tenant, 'versions'],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/policy/versions', {
          params: { path: { tenant_id: tenant }, query: { limit: versionsMax } },
        }),
      ),
  })

const useVersion = (tenant: string, version: number | null) =>
  useQuery({
    queryKey: ['policy', tenant, 'version', version],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/policy/versions/{version}', {
          params: { path: { tenant_id: tenant, version: version! } },
        }),
      ),
    enabled: version !== null,
    // A version never changes; only whether it is in force does.
    staleTime: 60_000,
  })

export function Versions({
  tenant,
  inForce,
  onEdit,
}: {
  tenant: string
  inForce: Shown
  onEdit: (from: Shown) => void
}) {
  const [search, change] = useUrlSearch()
  const versions = useVersions(tenant)
  const chosen = Number(search.version ?? inForce.version)
  return (
    <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,40rem)_minmax(0,1fr)]">
      <Panel title="Versions">
        <Loaded query={versions}>
          {({ data }) => (
            <Table
              columns={columns}
              label="Versions of the policy"
              minWidth="38rem"
              onSelect={({ version }) => change({ version: String(version), against: '' })}
              rowKey={({ version }) => String(version)}
              rows={data}
              selected={String(chosen)}
            />
          )}
        </Loaded>
      </Panel>
      <VersionDetail
        chosen={chosen}
        inForce={inForce}
        onEdit={onEdit}
        tenant={tenant}
        versions={versions.data?.data ?? []}
      />
    </div>
  )
}

function VersionDetail({
  tenant,
  chosen,
  inForce,
  versions,
  onEdit,
}: {
  tenant: string
  chosen: number
  inForce: Shown
  versions: Version[]
  onEdit: (from: Shown) => void
}) {
  const [search, change] = useUrlSearch()
  const mayEdit = useMay('engineer')
  const version = useVersion(tenant, chosen)
  const against = search.against === undefined ? null : Number(search.against)
  const others = versions.filter((one) => one.version !== chosen)
  return (
    <Panel
      action={
        <div className="flex flex-wrap items-center gap-2">
          <select
            aria-label="Compare with"
            className={`${controlClasses} h-8 w-auto!`}
            onChange={({ target }) => change({ against: target.value })}
            value={search.against ?? ''}
          >
            <option value="">The whole document</option>
            {others.map((one) => (
              <option key={one.version} value={one.version}>
                Compared with version {one.version}
              </option>
            ))}
          </select>
          {mayEdit && version.data && (
            <Button onClick={() => onEdit(version.data)}>Edit from here</Button>
          )}
          {chosen !== inForce.version && version.data && (
            <RollBack inForce={inForce.version} tenant={tenant} to={version.data} />
          )}
        </div>
      }
      title={`Version ${chosen}`}
    >
      <Loaded query={version} skeleton={<Skeleton className="m-4 h-96" />}>
        {(shown) => (
          <>
            <Facts
              facts={[
                ['Name', shown.name],
                [
                  'Published',
                  <span key="who">
                    {shown.created_by}, <Time at={shown.created_at} />
                  </span>,
                ],
                ...(shown.approved_by === null
                  ? []
                  : [['Approved', shown.approved_by] satisfies [string, string]]),
                ['Reason', shown.reason ?? 'none was given'],
                ['Content', <Id key="hash" value={shown.policy_hash} />],
              ]}
            />
            <div className="p-4 pt-0">
              {against === null || Number.isNaN(against) ? (
                <CodeEditor
                  className="h-[30rem] rounded-md border border-line"
                  label={`Version ${chosen} as JSON`}
                  language="json"
                  readOnly
                  value={toText(shown.document)}
                />
              ) : (
                <Difference after={shown} against={against} tenant={tenant} />
              )}
            </div>
          </>
        )}
      </Loaded>
    </Panel>
  )
}

function Difference({ tenant, after, against }: { tenant: string; after: Shown; against: number }) {
  const before = useVersion(tenant, against)
  const changes = useMemo(
    () => findChanges(before.data?.document, after.document),
    [before.data, after],
  )
  return (
    <Loaded query={before} skeleton={<Skeleton className="h-96" />}>
      {({ document }) => (
        <ChangeList after={toText(after.document)} before={toText(document)} changes={changes} />
      )}
    </Loaded>
  )
}

function RollBack({ tenant, to, inForce }: { tenant: string; to: Shown; inForce: number }) {
  const may = useMay('admin')
  const [open, setOpen] = useState(false)
  const [reason, setReason] = useState('')
  const fourEyes = useFourEyes(tenant)
  const publish = usePublish(tenant, () => setOpen(false))
  if (!may) return null
  const close = () => {
    setOpen(false)
    publish.reset()
  }
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        Roll back to this
      </Button>
      <Dialog
        description={`The document of version ${to.version} is published as a new version in place of version ${inForce}. Both stay in the list.`}
        locked={publish.isPending}
        onClose={close}
        open={open}
        title={`Roll back to version ${to.version}`}
      >
        <ReasonField onChange={setReason} value={reason} />
        <Propose
          body={{ kind: 'policy', document: to.document }}
          disabled={reason.trim() === ''}
          error={publish.error}
          isNeeded={fourEyes?.enabled === true}
          onCancel={close}
          pending={publish.isPending}
          reason={reason}
          tenant={tenant}
        >
          <Button
            busy={publish.isPending}
            disabled={reason.trim() === ''}
            look="primary"
            onClick={() =>
              publish.mutate(() =>
                ok(
                  api.PUT('/admin/v1/tenants/{tenant_id}/policy', {
                    params: {
                      path: { tenant_id: tenant },
                      query: { if_version: inForce, reason: reason.trim() },
                    },
                    body: to.document,
                  }),
                ),
              )
            }
          >
            Roll back
          </Button>
        </Propose>
      </Dialog>
    </>
  )
}
