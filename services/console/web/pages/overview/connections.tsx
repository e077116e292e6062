/** A line about where the events of a period came from, beside the period before. */
import { Link } from '@tanstack/react-router'
import type { Overview } from './overview.ts'

type Telemetry = NonNullable<Overview['telemetry']>
type Pair = Telemetry['events']

/** Nothing while no connection was measured, as without network data. */
export function Connections({
  tenant,
  overview: { telemetry, from, to },
}: {
  tenant: string
  overview: Overview
}) {
  if (telemetry === null || telemetry.connections.measured.now === 0) return null
  const { measured, anonymous, hosting, countries } = telemetry.connections
  const shareOf = (pair: Pair) => toShares(pair, measured)
  return (
    <p className="rounded-lg border border-line bg-raised px-4 py-3">
      Events came from{' '}
      <Link className="underline!" params={{ tenant }} search={{ from, to }} to="/t/$tenant/fleet">
        {countries.now === 1 ? '1 country' : `${countries.now} countries`}
      </Link>
      : {shareOf(anonymous)} over a VPN, a proxy, a relay or Tor, {shareOf(hosting)} from data
      centres. {toPercent(measured.now, telemetry.events.now)} of the events were measured.
    </p>
  )
}

/** `3 % (2 % before)`; a period before without a measured event is not compared. */
function toShares(pair: Pair, measured: Pair): string {
  const now = toPercent(pair.now, measured.now)
  return measured.before === 0 ? now : `${now} (${toPercent(pair.before, measured.before)} before)`
}

const toPercent = (some: number, all: number): string => {
  const percent = (100 * some) / all
  return `${percent.toFixed(percent > 0 && percent < 10 ? 1 : 0)} %`
}
