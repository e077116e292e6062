/** The webhook deliveries of one alert, with the last attempt of each. */
import { Link } from '@tanstack/react-router'
import { Badge } from '../../components/badge.tsx'
import { cutMiddle } from '../../components/id.tsx'
import { Empty } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { deliveryTones, toEndText } from '../webhooks/delivery-words.ts'
import type { AlertRecord } from './alert.ts'

type Delivery = AlertRecord['deliveries'][number]

export function Deliveries({ deliveries }: { deliveries: Delivery[] }) {
  if (deliveries.length === 0) {
    return (
      <Empty title="No webhook was sent">The tenant had none when this alert was raised.</Empty>
    )
  }
  return (
    <ul>
      {deliveries.map((delivery) => (
        <Line delivery={delivery} key={delivery.delivery_id} />
      ))}
    </ul>
  )
}

function Line({ delivery }: { delivery: Delivery }) {
  const { delivery_id: id, tenant_id: tenant, state, attempts, reason, due_at: due } = delivery
  const last = attempts.at(-1)
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 border-line border-b px-4 py-2 last:border-b-0">
      <Badge tone={deliveryTones[state]}>{state}</Badge>
      <Link
        className="font-mono text-sm"
        title={id}
        search={{ delivery: id }}
        params={{ tenant }}
        to="/t/$tenant/webhooks"
      >
        {cutMiddle(id)}
      </Link>
      {last !== undefined && (
        <span className="min-w-0 break-words">
          attempt {last.attempt}: {last.status ?? last.error_kind}
          {last.error && ` (${last.error})`} in {last.duration_ms} ms, <Time at={last.at} />
        </span>
      )}
      {reason && <span className="text-muted">{toEndText(reason)}</span>}
      {due && (
        <span className="text-muted">
          next <Time at={due} />
        </span>
      )}
    </li>
  )
}
