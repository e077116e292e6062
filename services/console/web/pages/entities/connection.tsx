/** Where an event, a session or a device came from; each part leads to the alerts with the same. */
import { Link } from '@tanstack/react-router'
import type { components } from '../../api/schema.ts'
import { Badge } from '../../components/badge.tsx'

export type Connection = components['schemas']['Connection']

/** In one line: country, operator, network and what the network is. */
export function ConnectionFact({
  tenant,
  connection,
}: {
  tenant: string
  connection: Connection | null
}) {
  if (connection === null) return <span className="text-muted">not measured</span>
  const { asn, country, kinds, network } = connection
  return (
    <span className="inline-flex max-w-full flex-wrap items-center gap-x-3 gap-y-1">
      {country !== null && <AlertsLink name="country" tenant={tenant} value={country} />}
      {asn !== null && <Operator connection={connection} tenant={tenant} />}
      <AlertsLink name="network" tenant={tenant} value={network} />
      {kinds.length > 0 && <Kinds kinds={kinds} />}
    </span>
  )
}

/** The operator's number, which leads to its alerts, and its name. */
export function Operator({ tenant, connection }: { tenant: string; connection: Connection }) {
  const { asn, organization } = connection
  if (asn === null) return <span className="text-muted">{organization ?? 'not known'}</span>
  return (
    <span className="min-w-0 truncate" title={organization ?? undefined}>
      <AlertsLink name="asn" tenant={tenant} text={`AS${asn}`} value={String(asn)} />
      {organization !== null && <span className="pl-1.5">{organization}</span>}
    </span>
  )
}

/** What a network is, such as vpn or hosting. A phone in a mobile network is the usual case. */
export function Kinds({ kinds }: { kinds: readonly string[] }) {
  return (
    <span className="inline-flex flex-wrap gap-1">
      {kinds.map((kind) => (
        <Badge key={kind} tone={kind === 'mobile' ? 'neutral' : 'warn'}>
          {kind}
        </Badge>
      ))}
    </span>
  )
}

export function AlertsLink({
  tenant,
  name,
  value,
  text = value,
}: {
  tenant: string
  name: 'country' | 'asn' | 'network'
  value: string
  text?: string
}) {
  return (
    <Link
      className="whitespace-nowrap"
      params={{ tenant }}
      search={{ [name]: value }}
      title={`Alerts from ${text}`}
      to="/t/$tenant/alerts"
    >
      {text}
    </Link>
  )
}
