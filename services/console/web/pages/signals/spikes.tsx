/** Prevalence spikes: signals that rose abruptly within one SDK version, often a bad release. */
import { Link } from '@tanstack/react-router'
import type { AnswerOf } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { buttonClasses } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { type Spike, toShareText, toSuppression } from './open-spikes.ts'

type Found = AnswerOf<'/admin/v1/tenants/{tenant_id}/prevalence-spikes', 'get'>

export function Spikes({
  tenant,
  query,
}: {
  tenant: string
  query: { data: Found | undefined; error: unknown; isPending: boolean; refetch: () => unknown }
}) {
  return (
    <Loaded query={query}>
      {({ data, checked_at: checkedAt }) => (
        <Panel>
          {data.length === 0 ? (
            <Empty title="No signal has risen abruptly">
              {checkedAt === null ? (
                <p>Shares were not compared yet; they are every hour.</p>
              ) : (
                <p>
                  Shares are compared every hour, last <Time at={checkedAt} />. A spike names the
                  SDK version and the signal, and offers a suppression.
                </p>
              )}
            </Empty>
          ) : (
            <ul className="divide-y divide-line">
              {data.map((spike) => (
                <SpikeRow
                  key={`${spike.platform} ${spike.sdk_version} ${spike.signal} ${spike.started_at}`}
                  spike={spike}
                  tenant={tenant}
                />
              ))}
            </ul>
          )}
        </Panel>
      )}
    </Loaded>
  )
}

function SpikeRow({ tenant, spike }: { tenant: string; spike: Spike }) {
  const may = useMay('engineer')
  const { signal, platform, sdk_version: version, ended_at: endedAt } = spike
  return (
    <li className="flex flex-wrap items-center gap-x-6 gap-y-2 px-4 py-3">
      <div className="min-w-60 flex-1">
        <p className="flex flex-wrap items-center gap-2">
          <code className="font-mono font-semibold text-sm">{signal}</code>
          <span>
            {platform} {version}
          </span>
          {endedAt === null ? <Badge tone="warn">open</Badge> : <Badge>over</Badge>}
        </p>
        <p className="text-muted text-sm">
          Since <Time at={spike.started_at} />: on <strong>{toShareText(spike.share)}</strong> of
          its devices, before {toShareText(spike.earlier_share)}, in other versions{' '}
          {toShareText(spike.elsewhere_share)}.
        </p>
      </div>
      <dl className="flex gap-6 text-right">
        <div>
          <dt className="text-muted text-xs">Devices</dt>
          <dd>{spike.devices.toLocaleString('en')}</dd>
        </div>
        <div>
          <dt className="text-muted text-xs">Alerts</dt>
          <dd>{spike.alerts.toLocaleString('en')}</dd>
        </div>
      </dl>
      {may && endedAt === null && (
        <Link
          className={`${buttonClasses('plain')} no-underline!`}
          search={toSuppression(spike)}
          params={{ tenant }}
          to="/t/$tenant/policies"
        >
          Suppress in a draft
        </Link>
      )}
    </li>
  )
}
