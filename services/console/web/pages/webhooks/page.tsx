/** Webhooks of a tenant: where alerts go, every delivery with its attempts, and how to receive. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { tenantQuery } from '../../api/tenants.ts'
import { Button } from '../../components/button.tsx'
import { Page as Frame } from '../../components/page.tsx'
import { Loaded, Skeleton } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useMay } from '../../shell/operator.ts'
import { Deliveries } from './deliveries.tsx'
import { EndpointPanel } from './endpoint-panel.tsx'
import { ReceiverPanel } from './receiver-panel.tsx'
import { ReplayMany } from './replay-many.tsx'
import { TestState } from './test-state.tsx'
import { useWebhookActions } from './webhook-actions.ts'

/** The worker of deliveries changes what this page shows. */
const refreshMs = 5_000

export function Page() {
  const { tenant: tenantId = '' } = useParams({ strict: false })
  const tenant = useQuery({ ...tenantQuery(tenantId), refetchInterval: refreshMs })
  const { test } = useWebhookActions(tenantId)
  const [replaying, setReplaying] = useState(false)
  const mayChange = useMay('engineer')
  const isOn = tenant.data?.webhook_state === 'on'
  return (
    <Frame
      action={
        mayChange && (
          <Button
            busy={test.isPending}
            disabled={!isOn}
            look="primary"
            onClick={() => test.mutate()}
            title={isOn ? undefined : 'The webhook is not on'}
          >
            Send a test event
          </Button>
        )
      }
      controls={
        mayChange && (
          <Button disabled={!isOn} icon="refresh" onClick={() => setReplaying(true)}>
            Replay deliveries
          </Button>
        )
      }
      title="Webhooks"
    >
      <Loaded query={tenant} skeleton={<Skeleton className="h-96" />}>
        {(data) => (
          <>
            {test.data && (
              <TestState deliveryId={test.data.delivery_id} tenantId={data.tenant_id} />
            )}
            <EndpointPanel tenant={data} />
            <Tabs
              tabs={[
                {
                  id: 'deliveries',
                  label: 'Deliveries',
                  content: <Deliveries tenant={data} />,
                },
                {
                  id: 'receiver',
                  label: 'Receiver in six languages',
                  content: <ReceiverPanel tenant={data} />,
                },
              ]}
            />
          </>
        )}
      </Loaded>
      {replaying && <ReplayMany onClose={() => setReplaying(false)} tenantId={tenantId} />}
    </Frame>
  )
}
