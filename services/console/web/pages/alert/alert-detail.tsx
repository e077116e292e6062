/** One alert: what was decided and why, what happened to it since, and its disposition. */

import { lazy, Suspense } from 'react'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { toPercentileText } from '#shared/core/outcomes/percentile-text.ts'
import { ActionBadge, SeverityBadge } from '../../components/badge.tsx'
import { Panel } from '../../components/page.tsx'
import { Failed, Skeleton, SkeletonRows, Waiting } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { RawBody } from '../event/raw-body.tsx'
import { SignalTable } from '../event/why/signal-table.tsx'
import { Waterfall } from '../event/why/waterfall.tsx'
import type { Alert, AlertRecord } from './alert.ts'
import { AlertFacts } from './alert-facts.tsx'
import { Deliveries } from './deliveries.tsx'
import { DispositionBadge, DispositionButtons } from './disposition.tsx'
import { History } from './history.tsx'
import { Now } from './now.tsx'
import { Sentence } from './sentence.tsx'

/** Loaded beside the alert itself, which is shown first. */
const Context = lazy(() => import('./context.tsx').then((file) => ({ default: file.Context })))

export function AlertDetail({
  alert,
  record,
  error,
  onRetry,
  onDisposition,
}: {
  /** What a list knows already is shown at once. */
  alert: Alert
  /** The rest, once it has arrived. */
  record: AlertRecord | undefined
  error: unknown
  onRetry: () => void
  onDisposition: (disposition: Disposition) => void
}) {
  const maySetDisposition = useMay('analyst')
  const { decision, disposition } = alert
  return (
    <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] content-start gap-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <SeverityBadge severity={decision.severity} />
        <ActionBadge action={decision.action} />
        <span className="font-semibold text-lg" title="Risk score, which decides">
          {decision.risk_score}
        </span>
        <span className="text-muted empty:hidden" title="Sessions of 30 days, as of the last hour">
          {toPercentileText(record?.risk_percentile)}
        </span>
        <span className="text-muted" title="Of the signals alone, as the device was answered">
          device score {alert.rasp_score}
        </span>
        <span className="text-muted">
          <Time at={alert.created_at} exact />
        </span>
      </div>
      <Sentence reasons={alert.reasons} score={decision.risk_score} />
      {maySetDisposition ? (
        <DispositionButtons onChoose={onDisposition} value={disposition} />
      ) : (
        <div>
          <DispositionBadge disposition={disposition} />
        </div>
      )}
      <Panel>
        <AlertFacts alert={alert} />
      </Panel>
      <Suspense fallback={<Skeleton className="h-64" />}>
        <Context alert={alert} record={record} />
      </Suspense>
      <Why alert={alert} record={record} />
      {record === undefined ? (
        <Panel>
          {error ? (
            <Failed error={error} onRetry={onRetry} />
          ) : (
            <Waiting onRetry={onRetry}>
              <SkeletonRows rows={6} />
            </Waiting>
          )}
        </Panel>
      ) : (
        <More record={record} />
      )}
    </div>
  )
}

/** The alert itself has the reasons; the values behind them come with the event's explanation. */
function Why({ alert, record }: { alert: Alert; record: AlertRecord | undefined }) {
  const steps = record?.explanation?.steps
  return (
    <Panel
      action={
        record && (
          <span className="text-muted text-sm">
            policy version {record.policy_version}
            {record.explanation && `, ${record.explanation.policy.name}`}
          </span>
        )
      }
      title="Why"
    >
      <Waterfall
        action={alert.decision.action}
        reasons={alert.reasons}
        score={alert.decision.risk_score}
        signals={steps?.signals}
        thresholds={steps?.thresholds}
      />
    </Panel>
  )
}

const missing: Record<string, string> = {
  event_not_found: 'The event behind this alert is no longer stored, so its values are not known.',
  event_not_explainable: 'The event behind this alert cannot be scored again.',
  unavailable: 'The stored events cannot be read at the moment.',
}

function More({ record }: { record: AlertRecord }) {
  const { explanation, unexplained } = record
  return (
    <>
      <Panel title="History">
        <History record={record} />
      </Panel>
      {explanation === null ? (
        <p className="px-1 text-muted">{missing[unexplained ?? ''] ?? missing.unavailable}</p>
      ) : (
        <>
          <Now record={record} />
          <Panel title="Signals of the event">
            <SignalTable signals={explanation.steps.signals} />
          </Panel>
          <RawBody eventId={record.alert.event_id} />
        </>
      )}
      <Panel title="Webhook deliveries">
        <Deliveries deliveries={record.deliveries} />
      </Panel>
    </>
  )
}
