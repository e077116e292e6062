/** An id in the rows of a query: a link to its page, and a button that copies it. */
import { Link } from '@tanstack/react-router'
import { IconButton } from '../../components/button.tsx'
import { IdText, useCopy } from '../../components/id.tsx'

/** Columns of the views that hold ids, each with the address of what it names. */
const addresses = {
  device_id: ({ tenant, value }) => (
    <Link params={{ tenant, deviceId: value }} to="/t/$tenant/devices/$deviceId">
      <IdText value={value} />
    </Link>
  ),
  user_id: ({ tenant, value }) => (
    <Link params={{ tenant, userId: value }} to="/t/$tenant/users/$userId">
      <IdText value={value} />
    </Link>
  ),
  account_id: ({ tenant, value }) => (
    <Link params={{ tenant, userId: value }} to="/t/$tenant/users/$userId">
      <IdText value={value} />
    </Link>
  ),
  phone_id: ({ tenant, value }) => (
    <Link params={{ tenant, phoneId: value }} to="/t/$tenant/phones/$phoneId">
      <IdText value={value} />
    </Link>
  ),
  event_id: ({ tenant, value }) => (
    <Link params={{ tenant, eventId: value }} to="/t/$tenant/events/$eventId">
      <IdText value={value} />
    </Link>
  ),
  alert_id: ({ tenant, value }) => (
    <Link params={{ tenant, alertId: value }} to="/t/$tenant/alerts/$alertId">
      <IdText value={value} />
    </Link>
  ),
  delivery_id: ({ tenant, value }) => (
    <Link params={{ tenant }} search={{ delivery: value }} to="/t/$tenant/webhooks">
      <IdText value={value} />
    </Link>
  ),
  session_id: ({ tenant, value }) => (
    <Link params={{ tenant }} search={{ session_id: value }} to="/t/$tenant/alerts">
      <IdText value={value} />
    </Link>
  ),
} satisfies Record<string, (id: { tenant: string; value: string }) => React.ReactNode>

type IdName = keyof typeof addresses

export const isId = (column: string): column is IdName => Object.hasOwn(addresses, column)

export function IdCell({ tenant, name, value }: { tenant: string; name: IdName; value: string }) {
  const [copied, copy] = useCopy()
  return (
    <span className="flex items-center gap-1">
      <span className="min-w-0 truncate">{addresses[name]({ tenant, value })}</span>
      <IconButton
        className="size-5!"
        icon={copied ? 'check' : 'copy'}
        label={copied ? 'Copied' : 'Copy'}
        onClick={() => copy(value)}
      />
    </span>
  )
}
