/** The shadow policy beside the active one: what it would have decided on live traffic. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerOf, ApiProblem, api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Empty, Loaded, Skeleton } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast, toastFailure } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { KnownOutcomes } from './known-outcomes.tsx'
import { ChangeTiles, ConfusionMatrix, MovedMost, NamedChanges, Tile } from './outcome.tsx'

type Comparison = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy/shadow/comparison', 'get'>
type Shadow = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy/shadow', 'get'>

const pollMs = 15_000
const toCount = (value: number) => value.toLocaleString('en')
const isNone = (error: unknown) => error instanceof ApiProblem && error.code === 'policy_not_found'

export function ShadowPanel({
  tenant,
  onEdit,
}: {
  tenant: string
  onEdit: (document: unknown) => void
}) {
  const params = { params: { path: { tenant_id: tenant } } }
  const shadow = useQuery({
    queryKey: ['shadow', tenant],
    queryFn: () =>
      ok(api.GET('/admin/v1/tenants/{tenant_id}/policy/shadow', params)).catch((error) => {
        if (isNone(error)) return null
        throw error
      }),
  })
  if (shadow.data === undefined) {
    return (
      <Loaded query={shadow} skeleton={<Skeleton className="h-96" />}>
        {() => null}
      </Loaded>
    )
  }
  if (shadow.data === null) {
    return (
      <Panel title="Shadow">
        <Empty title="No policy runs as the shadow">
          A shadow decides on live traffic beside the active policy and raises no alerts. Edit a
          draft and choose “Run as shadow”.
        </Empty>
      </Panel>
    )
  }
  return <Running onEdit={onEdit} shadow={shadow.data} tenant={tenant} />
}

function Running({
  tenant,
  shadow,
  onEdit,
}: {
  tenant: string
  shadow: Shadow
  onEdit: (document: unknown) => void
}) {
  const may = useMay('engineer')
  const client = useQueryClient()
  const params = { params: { path: { tenant_id: tenant } } }
  const comparison = useQuery({
    queryKey: ['shadow', tenant, 'comparison', shadow.version],
    queryFn: () => ok(api.GET('/admin/v1/tenants/{tenant_id}/policy/shadow/comparison', params)),
    refetchInterval: pollMs,
  })
  const off = useMutation({
    mutationFn: () => ok(api.DELETE('/admin/v1/tenants/{tenant_id}/policy/shadow', params)),
    onSuccess: () => {
      toast('The shadow policy is off. What it decided stays.')
      return client.invalidateQueries({ queryKey: ['shadow', tenant] })
    },
    onError: (error) => toastFailure(`The shadow was not switched off: ${error.message}`),
  })
  return (
    <Panel
      action={
        may && (
          <div className="flex gap-2">
            <Button onClick={() => onEdit(shadow.document)}>Edit from here</Button>
            <Button busy={off.isPending} onClick={() => off.mutate()}>
              Switch off
            </Button>
          </div>
        )
      }
      title={`Shadow: ${shadow.name ?? 'without a name'}`}
    >
      <Facts
        facts={[
          [
            'Set',
            <span key="who">
              {shadow.created_by}, <Time at={shadow.created_at} />
            </span>,
          ],
          ['Decides since', <Time at={shadow.effective_at} exact key="since" />],
        ]}
      />
      <Loaded query={comparison} skeleton={<Skeleton className="m-4 h-72" />}>
        {(compared) => <Compared comparison={compared} />}
      </Loaded>
    </Panel>
  )
}

function Compared({ comparison }: { comparison: Comparison }) {
  const { alerts } = comparison
  if (comparison.events === 0) {
    return (
      <Empty title="It has not decided any event yet">
        It decides events that are received from now on; this page looks again by itself.
      </Empty>
    )
  }
  const moved = comparison.moved_most.map(({ active_score, shadow_score, ...one }) => ({
    ...one,
    before: active_score,
    after: shadow_score,
  }))
  return (
    <div className="grid gap-5 p-4">
      <div className="flex flex-wrap gap-2">
        <Tile name="Events" value={toCount(comparison.events)} />
        <Tile name="Alerts, active" value={toCount(alerts.active)} />
        <Tile name="Alerts, shadow" value={toCount(alerts.shadow)} />
      </div>
      <div className="grid gap-2">
        <h3 className="font-medium">Sessions with an alert under either policy</h3>
        <div className="flex flex-wrap gap-2">
          <ChangeTiles changes={comparison.changes} />
        </div>
      </div>
      <ConfusionMatrix after="shadow" before="active" matrix={comparison.matrix} />
      <KnownOutcomes
        after={comparison.outcomes.shadow}
        asOf={comparison.outcomes.as_of}
        before={comparison.outcomes.active}
        heads={['Active', 'Shadow']}
        moves={comparison.outcomes}
      />
      <div className="grid gap-4 empty:hidden lg:grid-cols-2">
        <NamedChanges rows={comparison.by_flag} title="Flag" />
        <NamedChanges rows={comparison.by_sdk_version} title="SDK version" />
      </div>
      <div className="grid gap-2">
        <h3 className="font-medium">Sessions that moved most</h3>
        <MovedMost rows={moved} />
      </div>
    </div>
  )
}
