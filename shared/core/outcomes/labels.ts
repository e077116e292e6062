/**
 * Labels: what a device, a user, a session or an event turned out to be. The latest label of a
 * subject and external id counts, in the order in which they were received.
 */

import { labelAheadMsMax } from '#shared/core/base/limits/outcomes.ts'

/** Labels that every tenant has. A tenant declares more, each with what it means. */
export const fraudLabels = ['chargeback', 'account_takeover', 'promo_abuse', 'fraud'] as const
export const legitimateLabel = 'legitimate'
/** Takes back what the subject's labels of this external id said. */
export const retractedLabel = 'retracted'

/** What a label is about. */
export const subjectKinds = ['event', 'session', 'device', 'user'] as const
export type SubjectKind = (typeof subjectKinds)[number]
export type LabelSubject = { kind: SubjectKind; id: string }

export const outcomes = ['fraud', 'legitimate'] as const
export type Outcome = (typeof outcomes)[number]

/** A label as it is stored. */
export type Label = {
  labelId: string
  /** Rises in the order of receipt; the highest of a subject and external id counts. */
  seq: number
  subject: LabelSubject
  /** One of the names above, or a code that the tenant declared. */
  label: string
  /** What a declared code means; null of the names above, and of codes that were not declared. */
  codeMeans: Outcome | null
  /** When it happened. */
  occurredAtMs: number
  /** Of a device or a user: sessions up to so many days before `occurredAtMs` are covered. */
  coveredDays: number
  /** Digits with a point, such as 129.90; null without an amount. */
  amount: string | null
  /** ISO 4217; null without an amount. */
  currency: string | null
  /** Empty when the sender named none. */
  externalId: string
}

/**
 * What a label says; null for a retraction.
 * @param codeMeans what a declared code means; a code from before declarations is fraud
 */
export function toOutcome(label: string, codeMeans: Outcome | null = null): Outcome | null {
  if (label === retractedLabel) return null
  return label === legitimateLabel ? 'legitimate' : (codeMeans ?? 'fraud')
}

/** Whether an instant is further ahead than clocks and time zones differ. @param nowMs the wall clock */
export const isAhead = (atMs: number, nowMs: number): boolean => atMs > nowMs + labelAheadMsMax

/** The labels that count: the latest of each subject and external id, without retractions. */
export function toCountingLabels(labels: readonly Label[]): Label[] {
  const latest = new Map<string, Label>()
  for (const label of labels) {
    const key = JSON.stringify([label.subject.kind, label.subject.id, label.externalId])
    const present = latest.get(key)
    if (present === undefined || present.seq < label.seq) latest.set(key, label)
  }
  return [...latest.values()].filter(({ label }) => label !== retractedLabel)
}
