/** What is read of a case once it is open: its context, why, its alerts, notes and history. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { Loaded, SkeletonRows } from '../../components/states.tsx'
import { counted } from '../../components/words.ts'
import { useMay } from '../../shell/operator.ts'
import type { Alert } from '../alert/alert.ts'
import { Sentence } from '../alert/sentence.tsx'
import { Listed } from '../entities/listed.tsx'
import { Waterfall } from '../event/why/waterfall.tsx'
import { Labelled } from '../labels/labelled.tsx'
import { SpikeNote } from '../signals/spike-note.tsx'
import type { Case, CaseRecord } from './case.ts'
import { CaseAlerts } from './case-alerts.tsx'
import { CaseFacts } from './case-facts.tsx'
import { CaseHistory } from './case-history.tsx'
import { SplitBar } from './changes/split-bar.tsx'
import type { useJudging } from './judging/judging.ts'

const pageAlerts = 100

/** A device or user that a case is about; of a phone the device of its worst alert. */
const toEntity = ({ subject: { kind, id } }: Case, worst: Alert) =>
  kind === 'phone' ? { kind: 'device' as const, id: worst.entity.device.device_id } : { kind, id }

export function MoreOfCase({
  record,
  judging,
  onOpen,
}: {
  record: CaseRecord
  judging: ReturnType<typeof useJudging>
  onOpen: (caseId: string) => void
}) {
  const { case: shown } = record
  const { case_id: caseId, tenant_id: tenant } = shown
  const [atFirst] = useState(shown.alerts)
  const refused = judging.refusedOf(caseId)
  const came = Math.max(0, shown.alerts - (refused?.alerts ?? atFirst))
  const worst = useQuery({
    queryKey: ['case-alerts', caseId, 'worst', shown.risk_score],
    queryFn: async () => {
      const query = { case_id: caseId, min_score: shown.risk_score, limit: 1 }
      const { data } = await loadAlerts(tenant, query)
      return data[0] ?? null
    },
  })
  const loaded = useCaseAlerts(shown)
  return (
    <>
      {(came > 0 || refused) && <Came count={came} isRefused={refused !== undefined} />}
      <Loaded query={worst} skeleton={<SkeletonRows rows={6} />}>
        {(alert) =>
          alert && (
            <>
              <Sentence reasons={alert.reasons} score={alert.decision.risk_score} />
              <SpikeNote alerts={[alert, ...(loaded.rows ?? [])]} tenant={tenant} />
              <Panel>
                <CaseFacts record={record} worst={alert} />
              </Panel>
            </>
          )
        }
      </Loaded>
      <Alerts came={came} onOpen={onOpen} shown={shown} withDevice={record.devices.length > 1} />
      {worst.data && (
        <>
          <Labelled subject={toEntity(shown, worst.data)} tenant={tenant} />
          <Listed listed={toEntity(shown, worst.data)} tenant={tenant} />
        </>
      )}
      <Panel title="Notes and history">
        <CaseHistory record={record} />
      </Panel>
      {worst.data && (
        <Panel
          action={
            <Link params={{ tenant, alertId: worst.data.alert_id }} to="/t/$tenant/alerts/$alertId">
              The alert
            </Link>
          }
          title="Why, of the worst alert"
        >
          <Waterfall
            action={worst.data.decision.action}
            reasons={worst.data.reasons}
            score={worst.data.decision.risk_score}
          />
        </Panel>
      )}
    </>
  )
}

function Came({ count, isRefused }: { count: number; isRefused: boolean }) {
  const alerts = `${counted(count, 'alert')} came ${isRefused ? 'meanwhile' : 'since you opened it'}`
  return (
    <p className="rounded-lg bg-warn-soft px-3 py-2 text-warn" role="alert">
      {count === 0
        ? 'Not judged: its alerts were judged meanwhile, as the history below says.'
        : isRefused
          ? `Not judged: ${alerts}, marked as new below. Judge again to include what is new.`
          : `${alerts}, marked as new below.`}
    </p>
  )
}

const loadAlerts = (
  tenant: string,
  query: { case_id: string; limit: number; min_score?: number; cursor?: string },
) =>
  ok(
    api.GET('/admin/v1/tenants/{tenant_id}/alerts', {
      params: { path: { tenant_id: tenant }, query },
    }),
  )

/** The alerts of a case that are loaded, newest first. */
function useCaseAlerts({ case_id: caseId, tenant_id: tenant }: Case) {
  const alerts = useInfiniteQuery({
    queryKey: ['case-alerts', caseId, 'list'],
    queryFn: ({ pageParam: cursor }) =>
      loadAlerts(tenant, {
        case_id: caseId,
        limit: pageAlerts,
        ...(cursor === '' ? {} : { cursor }),
      }),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: cursor }) => cursor ?? undefined,
  })
  return { alerts, rows: alerts.data?.pages.flatMap(({ data }) => data) }
}

function Alerts({
  shown,
  withDevice,
  came,
  onOpen,
}: {
  shown: Case
  withDevice: boolean
  came: number
  onOpen: (caseId: string) => void
}) {
  const { case_id: caseId, tenant_id: tenant } = shown
  const mayChange = useMay('analyst')
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set())
  const { alerts, rows } = useCaseAlerts(shown)
  const loadMore = () => {
    if (alerts.hasNextPage && !alerts.isFetchingNextPage) void alerts.fetchNextPage()
  }
  const check = (id: string) => {
    const next = new Set(checked)
    if (!next.delete(id)) next.add(id)
    setChecked(next)
  }
  const isNew = new Set(rows?.slice(0, came).map(({ alert_id: id }) => id))
  return (
    <Panel
      action={
        <Link params={{ tenant }} search={{ case_id: caseId }} to="/t/$tenant/alerts">
          All {shown.alerts.toLocaleString('en')} in Alerts
        </Link>
      }
      title="Alerts"
    >
      <Loaded query={{ ...alerts, data: rows }}>
        {(data) => (
          <CaseAlerts
            alerts={data}
            checked={mayChange && shown.alerts > 1 ? checked : undefined}
            isNew={({ alert_id: id }) => isNew.has(id)}
            onCheck={check}
            onEnd={loadMore}
            withDevice={withDevice}
          />
        )}
      </Loaded>
      {checked.size > 0 && (
        <SplitBar
          alertIds={[...checked]}
          onDone={(caseOfSplit) => {
            setChecked(new Set())
            onOpen(caseOfSplit)
          }}
          shown={shown}
        >
          <Button look="quiet" onClick={() => setChecked(new Set())} small>
            Clear selection
          </Button>
        </SplitBar>
      )}
    </Panel>
  )
}
