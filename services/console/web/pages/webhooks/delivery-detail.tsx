/** One delivery: every attempt with the request and what the receiver answered, and its replay. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import type { Tenant } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { Id } from '../../components/id.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { Failed, Loaded, SkeletonRows } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { deliveryTones, toEndText, toShownState } from './delivery-words.ts'
import { type Delivery, useDelivery, useWebhookActions } from './webhook-actions.ts'

type Attempt = Delivery['attempts'][number]
type SentRequest = AnswerOf<'/admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}/request', 'get'>

export function DeliveryDetail({ tenant, deliveryId }: { tenant: Tenant; deliveryId: string }) {
  const { tenant_id: tenantId } = tenant
  const params = { path: { tenant_id: tenantId, delivery_id: deliveryId } }
  const delivery = useDelivery(tenantId, deliveryId)
  const request = useQuery({
    queryKey: ['delivery-request', tenantId, deliveryId],
    queryFn: () =>
      ok(api.GET('/admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}/request', { params })),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { replay } = useWebhookActions(tenantId)
  const mayChange = useMay('engineer')
  const alertId = delivery.data?.alert_id ?? null
  return (
    <Panel
      action={
        mayChange &&
        alertId !== null && (
          <Button
            busy={replay.isPending}
            disabled={tenant.webhook_state !== 'on'}
            icon="refresh"
            onClick={() => replay.mutate(alertId)}
            small
          >
            Replay
          </Button>
        )
      }
      title="Delivery"
    >
      <Loaded query={delivery}>
        {(data) => (
          <>
            <Facts
              facts={[
                [
                  'State',
                  <span key="state">
                    <Badge tone={deliveryTones[toShownState(data)]}>{toShownState(data)}</Badge>
                    {data.reason !== null && (
                      <span className="text-muted"> {toEndText(data.reason)}</span>
                    )}
                  </span>,
                ],
                ['Delivery', <Id key="id" most={32} value={data.delivery_id} />],
                [
                  'Of',
                  data.alert_id === null ? (
                    <span key="event">{data.event}</span>
                  ) : (
                    <Id key="alert" most={32} value={data.alert_id} />
                  ),
                ],
                ['Created', <Time at={data.created_at} exact key="created" />],
                ...(data.due_at === null
                  ? []
                  : [
                      ['Next attempt', <Time at={data.due_at} key="due" />] as [
                        string,
                        React.ReactNode,
                      ],
                    ]),
              ]}
            />
            {data.attempts.length === 0 && (
              <p className="border-line border-t p-4 text-muted">
                {data.ended_at === null ? 'It has not been tried yet.' : 'It was never tried.'}
              </p>
            )}
            <ol className="border-line border-t" reversed>
              {data.attempts.toReversed().map((attempt, at) => (
                <AttemptItem
                  attempt={attempt}
                  isOpen={at === 0}
                  key={attempt.attempt}
                  request={request}
                />
              ))}
            </ol>
          </>
        )}
      </Loaded>
    </Panel>
  )
}

type RequestQuery = {
  data: SentRequest | undefined
  error: unknown
  isPending: boolean
  refetch: () => unknown
}

function AttemptItem({
  attempt,
  isOpen,
  request,
}: {
  attempt: Attempt
  isOpen: boolean
  request: RequestQuery
}) {
  const [open, setOpen] = useState(isOpen)
  const { status, error_kind: errorKind, error } = attempt
  const ok = errorKind === null
  return (
    <li className="border-line border-b last:border-b-0">
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)} open={open}>
        <summary className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 hover:bg-hover">
          <Icon name={open ? 'down' : 'right'} size={12} />
          <span className="font-medium">Attempt {attempt.attempt}</span>
          <Badge tone={ok ? 'good' : 'bad'}>{status ?? errorKind}</Badge>
          <span className="text-muted">
            <Time at={attempt.at} />, {attempt.duration_ms.toLocaleString('en')} ms
          </span>
        </summary>
        {open && (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-4 px-4 pt-1 pb-4">
            {error !== null && <p className="text-bad break-words">{error}</p>}
            {attempt.address !== null && (
              <p className="text-muted">
                Connected to <span className="font-mono text-sm">{attempt.address}</span>
              </p>
            )}
            <Sent attempt={attempt} request={request} />
            <div className="grid grid-cols-[minmax(0,1fr)] gap-1">
              <h3 className="font-medium">Response</h3>
              {status === null ? (
                <p className="text-muted">There was none.</p>
              ) : attempt.answer === null || attempt.answer === '' ? (
                <p className="text-muted">{status}, without a body.</p>
              ) : (
                <CodeBlock
                  code={`${status}\n\n${attempt.answer}`}
                  label={`Response to attempt ${attempt.attempt}`}
                />
              )}
            </div>
          </div>
        )}
      </details>
    </li>
  )
}

function Sent({ attempt, request }: { attempt: Attempt; request: RequestQuery }) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-1">
      <h3 className="font-medium">Request</h3>
      {request.error !== null && request.data === undefined ? (
        <Failed error={request.error} onRetry={() => void request.refetch()} />
      ) : request.data === undefined ? (
        <SkeletonRows rows={4} />
      ) : (
        <CodeBlock
          code={writeRequest(attempt, request.data)}
          label={`Request of attempt ${attempt.attempt}`}
        />
      )}
    </div>
  )
}

/** The request as text; the signatures are made for each attempt and not kept. */
function writeRequest(attempt: Attempt, { headers, body }: SentRequest): string {
  const lines = Object.entries({
    ...headers,
    'x-service-attempt': String(attempt.attempt),
    'x-service-signature': '(not kept)',
    'webhook-signature': '(not kept)',
  }).map(([name, value]) => `${name}: ${value}`)
  return `POST\n${lines.join('\n')}\n\n${indent(body)}`
}

function indent(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
