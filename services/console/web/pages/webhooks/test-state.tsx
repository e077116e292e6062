/** What became of the test event that was sent from this page: one state, as the list shows it. */
import { Badge } from '../../components/badge.tsx'
import { deliveryTones, toShownState, toTestText } from './delivery-words.ts'
import { useDelivery } from './webhook-actions.ts'

export function TestState({ tenantId, deliveryId }: { tenantId: string; deliveryId: string }) {
  const { data } = useDelivery(tenantId, deliveryId)
  if (data === undefined) return null
  const state = toShownState(data)
  return (
    <p className="flex flex-wrap items-center gap-2" role="status">
      <Badge tone={deliveryTones[state]}>{state}</Badge>
      <span className="min-w-0 break-words">{toTestText(data)}</span>
    </p>
  )
}
