/** Counts proposals by what became of them, and direct calls that an approval was asked for. */
import { Problem } from '#shared/core/http/problem.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import type { ConsoleApp } from '../http/admin-app.ts'

const outcomes = [
  'made',
  'approved',
  'rejected',
  'withdrawn',
  'void',
  'failed',
  /** A direct call, which was refused. */
  'required',
] as const
export type ProposalCounter = (outcome: (typeof outcomes)[number]) => void

/** @param app before its routes are added */
export function createProposalCounter(app: ConsoleApp, metrics: Metrics): ProposalCounter {
  const counter = metrics.counter(
    'di_proposals_total',
    'Proposals by what became of them, and calls that were refused because they need one',
    ['outcome'],
  )
  startAtZero(
    counter,
    outcomes.map((outcome) => ({ outcome })),
  )
  app.addHook('onError', async (_request, _reply, error: unknown) => {
    if (error instanceof Problem && error.code === 'approval_required') {
      counter.inc({ outcome: 'required' })
    }
  })
  return (outcome) => counter.inc({ outcome })
}
