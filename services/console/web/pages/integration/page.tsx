/**
 * Admin → Integrations → the tenant: its keys and who still uses a replaced one, rotation, what its
 * clients are answered, and how to sign.
 */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { type Tenant, tenantQuery } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { Button, buttonClasses } from '../../components/button.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Settled } from '../../components/state/settled.tsx'
import { Loaded, Skeleton, SkeletonRows } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { webhookTones } from '../integrations.tsx'
import { SecondFactorRulePanel } from '../operators/second-factor-rule.tsx'
import { NamedKeysPanel } from './access/named-keys.tsx'
import { StatePanel } from './access/state-panel.tsx'
import { AppsPanel } from './apps-panel.tsx'
import { ClientAddressPanel } from './client-address.tsx'
import { IngestAnswerPanel } from './ingest-answer.tsx'
import { InstallsPanel } from './installs/installs-panel.tsx'
import { NewKeysDialog, RotateKeys } from './rotate-keys.tsx'
import { type NewKeys, useFetchKeys, useRotate, useRotation } from './rotation.ts'
import { RotationPanel } from './rotation-panel.tsx'
import { SnippetsPanel } from './snippets-panel.tsx'

/** Below the fold, with the texts of all reasons. */
const CoveragePanel = lazy(() =>
  import('./installs/coverage-panel.tsx').then(({ CoveragePanel: shown }) => ({ default: shown })),
)

const CaseRulesPanel = lazy(() =>
  import('../cases/rules-panel.tsx').then(({ CaseRulesPanel: shown }) => ({ default: shown })),
)

export function Page() {
  const { tenant: tenantId = '' } = useParams({ strict: false })
  const tenant = useQuery(tenantQuery(tenantId))
  const [asking, setAsking] = useState(false)
  const [keys, setKeys] = useState<NewKeys | null>(null)
  const rotate = useRotate(tenantId)
  const fetchKeys = useFetchKeys(tenantId)
  const rotation = useRotation(tenantId, rotate.isPending).data?.rotation ?? null
  const mayRotate = useMay('admin')
  const mayCheck = useMay('engineer')
  return (
    <Frame
      action={
        mayRotate && (
          <Button
            disabled={tenant.data === undefined}
            icon="key"
            look="primary"
            onClick={() => setAsking(true)}
          >
            Rotate keys
          </Button>
        )
      }
      controls={
        <>
          <Link
            className={`${buttonClasses()} no-underline!`}
            params={{ tenant: tenantId }}
            to="/manage/integrations/$tenant/requests"
          >
            Request log
          </Link>
          {mayCheck && (
            <>
              <Link
                className={`${buttonClasses()} no-underline!`}
                params={{ tenant: tenantId }}
                to="/manage/integrations/$tenant/signature"
              >
                Signature debugger
              </Link>
              <Link
                className={`${buttonClasses()} no-underline!`}
                params={{ tenant: tenantId }}
                to="/manage/integrations/$tenant/attestation"
              >
                Attestation
              </Link>
            </>
          )}
        </>
      }
      title={tenantId}
    >
      <Loaded query={tenant} skeleton={<Skeleton className="h-64" />}>
        {(data) => (
          <Suspense fallback={<Skeleton className="h-64" />}>
            <Settled skeleton={<Skeleton className="h-64" />}>
              <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
                <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
                  <KeysPanel tenant={data} />
                  <StatePanel tenant={data} />
                </div>
                <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
                  {rotation && (
                    <RotationPanel
                      error={fetchKeys.error}
                      onShowKeys={() => fetchKeys.mutate(undefined, { onSuccess: setKeys })}
                      rotation={rotation}
                      showing={fetchKeys.isPending}
                    />
                  )}
                  <InstallsPanel tenant={data} />
                  <StaleSecretPanel tenantId={tenantId} />
                  <IngestAnswerPanel tenant={data} />
                  <ClientAddressPanel tenant={data} />
                </div>
              </div>
              <CoveragePanel tenantId={tenantId} />
              <NamedKeysPanel tenantId={tenantId} />
              <SecondFactorRulePanel tenant={tenantId} />
              <CaseRulesPanel tenant={tenantId} />
              <AppsPanel tenantId={tenantId} />
              <SnippetsPanel tenantId={tenantId} />
            </Settled>
          </Suspense>
        )}
      </Loaded>
      {asking && (
        <RotateKeys
          error={rotate.error}
          onClose={() => {
            setAsking(false)
            rotate.reset()
          }}
          onRotate={(wanted) =>
            rotate.mutate(wanted, {
              onSuccess: (made) => {
                setAsking(false)
                setKeys(made)
              },
            })
          }
          pending={rotate.isPending}
          rotation={rotation}
          tenantId={tenantId}
        />
      )}
      {keys !== null && (
        <NewKeysDialog keys={keys} onClose={() => setKeys(null)} rotation={rotation} />
      )}
    </Frame>
  )
}

function KeysPanel({ tenant }: { tenant: Tenant }) {
  const { public_api_key: key, hmac_secret: hmac, webhook_secret: webhook } = tenant
  const none = <span className="text-muted">none</span>
  const since = (shown: string, at: string) => (
    <>
      <span className="font-mono text-sm">{shown}</span>{' '}
      <span className="text-muted">
        since <Time at={at} />
      </span>
    </>
  )
  return (
    <Panel title="Keys">
      <Facts
        facts={[
          ['Name', tenant.name || none],
          ['Kind', tenant.environment],
          ['Public API key', key ? since(`${key.prefix}…${key.last4}`, key.created_at) : none],
          ['Last used', <Time at={key?.last_used_at ?? null} key="used" />],
          ['HMAC secret', hmac ? since(`…${hmac.last4}`, hmac.created_at) : none],
          ['Webhook secret', webhook ? since(`…${webhook.last4}`, webhook.created_at) : none],
          [
            'Webhook',
            <span key="webhook">
              <Badge tone={webhookTones[tenant.webhook_state]}>{tenant.webhook_state}</Badge>{' '}
              <span className="break-all">{tenant.webhook_url ?? ''}</span>
            </span>,
          ],
        ]}
      />
    </Panel>
  )
}

/** How often the edges report. */
const reportMs = 2_000

type StaleRow = { sdk_version: string; requests: number; last_seen_at: string }

const staleColumns: Column<StaleRow>[] = [
  { id: 'version', head: 'SDK version', cell: ({ sdk_version }) => sdk_version },
  {
    id: 'requests',
    head: 'Requests',
    cell: ({ requests }) => requests.toLocaleString('en'),
    numeric: true,
    width: '7rem',
  },
  {
    id: 'seen',
    head: 'Last one',
    cell: ({ last_seen_at }) => <Time at={last_seen_at} />,
    width: '8rem',
  },
]

function StaleSecretPanel({ tenantId }: { tenantId: string }) {
  const stale = useQuery({
    queryKey: ['stale-secret', tenantId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/stale-secret-requests', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
    refetchInterval: reportMs,
  })
  return (
    <Panel title="Requests signed with the replaced secret">
      <Loaded query={stale} skeleton={<SkeletonRows rows={3} />}>
        {({ retired_secret: retired, requests, data }) =>
          retired === null ? (
            <p className="p-4 text-muted">
              The HMAC secret was never rotated. After a rotation this shows which SDK versions
              still sign with the old one.
            </p>
          ) : (
            <>
              <p className="p-4 text-muted">
                <strong className="text-text">{requests.toLocaleString('en')}</strong> refused since{' '}
                <span className="font-mono text-sm">…{retired.last4}</span> was replaced{' '}
                <Time at={retired.retired_at} />.{' '}
                {requests === 0 && 'Every request that came since is signed with the new secret.'}
              </p>
              {data.length > 0 && (
                <Table
                  columns={staleColumns}
                  heightClass="max-h-64"
                  label="Refused requests by SDK version"
                  minWidth="20rem"
                  rowKey={({ sdk_version }) => sdk_version}
                  rows={data}
                />
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}
