/** Said while a signal of alerts has an open spike in their SDK version: likely a bad release. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMay } from '../../shell/operator.ts'
import type { Alert } from '../alert/alert.ts'
import { isOfSpike } from './is-of-spike.ts'
import { openSpikesQuery, toSuppression } from './open-spikes.ts'

export function SpikeNote({ tenant, alerts }: { tenant: string; alerts: readonly Alert[] }) {
  const mayEdit = useMay('engineer')
  const spikes = useQuery(openSpikesQuery(tenant))
  const found = (spikes.data?.data ?? []).filter((spike) =>
    alerts.some((alert) => isOfSpike(alert, spike)),
  )
  return found.map((spike) => (
    <div
      className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-lg bg-warn-soft px-4 py-2.5 text-warn"
      key={`${spike.platform} ${spike.sdk_version} ${spike.signal}`}
      role="note"
    >
      <span className="min-w-0 flex-1 basis-60">
        A spike is open for <code className="text-sm wrap-anywhere">{spike.signal}</code> in{' '}
        {spike.platform} {spike.sdk_version}: likely a bad release.
      </span>
      {mayEdit && (
        <>
          <Link params={{ tenant }} search={{ weight: spike.signal }} to="/t/$tenant/policies">
            Weight in a draft
          </Link>
          <Link params={{ tenant }} search={toSuppression(spike)} to="/t/$tenant/policies">
            Suppress in a draft
          </Link>
        </>
      )}
    </div>
  ))
}
