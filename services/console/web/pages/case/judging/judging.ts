/**
 * Judging a case: one key sets the disposition of its open alerts; in the same breath a second key
 * denies, allows or labels its devices or users. What the page has not shown is not judged: the
 * server refuses when an alert came since, and the page shows it.
 */
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { ApiProblem, api, ok } from '../../../api/client.ts'
import { serverNowMs } from '../../../components/time/server-clock.ts'
import { newestUndo, toast, toastFailure, undoLast } from '../../../components/toast.tsx'
import { counted } from '../../../components/words.ts'
import { type Case, readCaseAgain, showCase } from '../case.ts'

export type Judgement = Exclude<Disposition, 'OPEN'>
/** What is done in the same breath as a judgement. */
export type Also = 'deny' | 'allow' | 'label'

export const judgementKeys: Readonly<Record<string, Judgement>> = {
  c: 'CONFIRMED',
  f: 'FALSE_POSITIVE',
  r: 'REVIEWED',
}
export const alsoKeys = { deny: 'd', allow: 'w', label: 'l' } as const

const dayMs = 86_400_000
/** How long an entry of a list lasts; null never expires. */
export const expiries: Readonly<Record<string, { text: string; ms: number | null }>> = {
  '7d': { text: '7 days', ms: 7 * dayMs },
  '30d': { text: '30 days', ms: 30 * dayMs },
  '90d': { text: '90 days', ms: 90 * dayMs },
  never: { text: 'for good', ms: null },
}

/** The label that says the same as a judgement; null of one that says neither. */
export const labelOf = (to: Judgement): 'fraud' | 'legitimate' | null =>
  (({ CONFIRMED: 'fraud', FALSE_POSITIVE: 'legitimate', REVIEWED: null }) as const)[to]

/** Why an entry was made, as alerts and webhooks show it. */
const reasonOf: Readonly<Record<Judgement, string>> = {
  CONFIRMED: 'confirmed_case',
  FALSE_POSITIVE: 'false_positive',
  REVIEWED: 'reviewed_case',
}

export type Judged = {
  /** As it was before. */
  shown: Case
  to: Judgement
  /** How many alerts were judged; of one that is not saved yet, how many are open. */
  alerts: number
  isSaved: boolean
  /** As the server has judged it, once it has. */
  after: Pick<Case, 'judged_at' | 'version'> | null
  also: Partial<Record<Also, 'saving' | 'saved'>>
  /** The note that could be undone before it, if any. */
  noteBefore: number
}

type Wishes = {
  label?: { label: string; external_id: string }
  list?: { list: 'deny' | 'allow'; reason: string; expires_at: string | null }
}

const judgeCase = (caseId: string, to: Judgement, more: Wishes & { expected_version?: number }) =>
  ok(
    api.POST('/admin/v1/cases/{case_id}/judgement', {
      params: { path: { case_id: caseId } },
      body: { disposition: to, ...more },
    }),
  )

/**
 * @param onJudged called when a judgement is saved
 * @param onReturn called with the case whose judgement was refused or taken back
 */
export function useJudging({
  onJudged,
  onReturn,
}: {
  onJudged: (caseId: string) => void
  onReturn: (caseId: string) => void
}) {
  const client = useQueryClient()
  const [judged, setJudged] = useState<Judged | null>(null)
  /** Of the case that a judgement was refused of: what was seen then. */
  const [refused, setRefused] = useState<{ caseId: string; version: number; alerts: number }>()
  const [expiry, setExpiry] = useState('90d')
  /** What can be undone of the judgement that is shown, the newest last. */
  const undos = useRef<(() => Promise<void>)[]>([])
  /** A second key while the first is on its way means the same case, not the next one. */
  const isSending = useRef(false)
  /** What was judged last, whose older state is shown until the next case has come. */
  const done = useRef({ caseId: '', version: 0 })

  const judge = (shown: Case, to: Judgement) => {
    if (isSending.current || shown.state !== 'OPEN') return
    const { caseId, version } = done.current
    if (caseId === shown.case_id && shown.version < version) return
    isSending.current = true
    undos.current = []
    setRefused(undefined)
    const noteBefore = newestUndo()
    const alerts = shown.open_alerts
    setJudged({ shown, to, alerts, isSaved: false, after: null, also: {}, noteBefore })
    const sent = judgeCase(shown.case_id, to, { expected_version: shown.version })
    sent.then(
      (answer) => {
        showCase(client, answer.case)
        void readCaseAgain(client, shown.case_id)
        void client.invalidateQueries({ queryKey: ['alerts'], refetchType: 'none' })
        void client.invalidateQueries({ queryKey: ['case-counts', shown.tenant_id] })
        const { judged: count, case: after } = answer
        isSending.current = false
        done.current = { caseId: shown.case_id, version: after.version }
        setJudged((now) => now && { ...now, alerts: count, isSaved: true, after })
        onJudged(shown.case_id)
      },
      (error: unknown) => {
        isSending.current = false
        setJudged(null)
        if (error instanceof ApiProblem && error.code === 'case_changed') {
          setRefused({ caseId: shown.case_id, version: shown.version, alerts: shown.alerts })
          onReturn(shown.case_id)
          void readCaseAgain(client, shown.case_id)
        } else toastFailure(`Not saved: ${toReason(error)}`)
      },
    )
  }

  /** Of a case that was judged: by the time of an answer, another one may be shown. */
  const markOf = (shown: Case) => (what: Also, state: 'saving' | 'saved' | undefined) =>
    setJudged((now) => {
      if (now?.shown !== shown) return now
      const { [what]: _, ...others } = now.also
      return { ...now, also: state === undefined ? others : { ...others, [what]: state } }
    })

  const also = (what: Also) => {
    if (judged === null || !judged.isSaved || judged.also[what] !== undefined) return
    const { shown, to, after } = judged
    const label = labelOf(to)
    if (what === 'label' && label === null) return
    const ms = expiries[expiry]?.ms ?? null
    const wishes: Wishes =
      what === 'label'
        ? { label: { label: label!, external_id: shown.case_id } }
        : {
            list: {
              list: what,
              reason: reasonOf[to],
              expires_at: ms === null ? null : new Date(serverNowMs() + ms).toISOString(),
            },
          }
    const mark = markOf(shown)
    const ownUndos = undos.current
    mark(what, 'saving')
    // An alert that came since the judgement is not judged along with it.
    const unchanged = after === null ? {} : { expected_version: after.version }
    judgeCase(shown.case_id, to, { ...wishes, ...unchanged }).then(
      ({ entry_ids: entries }) => {
        mark(what, 'saved')
        readMarksAgain()
        ownUndos.push(async () => {
          if (what === 'label') {
            // The same id of a case takes back what was said under it.
            const retraction = { label: 'retracted', external_id: shown.case_id }
            await judgeCase(shown.case_id, to, { label: retraction, ...unchanged })
          } else {
            const { removeEntry } = await import('../../lists/lists.ts')
            await Promise.all(entries.map((id) => removeEntry(shown.tenant_id, id)))
          }
          mark(what, undefined)
          readMarksAgain()
        })
      },
      (error: unknown) => {
        mark(what, undefined)
        toastFailure(`Not saved: ${toReason(error)}`)
      },
    )
  }
  const readMarksAgain = () => {
    for (const name of ['lists', 'labels']) void client.invalidateQueries({ queryKey: [name] })
  }

  const undo = () => {
    // What was done last: assigning and snoozing have a note of their own.
    if (judged === null || newestUndo() > judged.noteBefore) {
      undoLast()
      return
    }
    if (!judged.isSaved) return
    const last = undos.current.pop()
    if (last !== undefined) {
      last().catch((error: unknown) => toastFailure(`Not undone: ${toReason(error)}`))
      return
    }
    const { shown, to, after, alerts } = judged
    setJudged(null)
    const since = after?.judged_at ?? null
    import('./reopen.ts')
      .then(({ reopenAlerts }) =>
        reopenAlerts(client, { shown, disposition: to, since, count: alerts }),
      )
      .then(
        (count) => {
          toast(`Taken back: ${counted(count, 'alert')} open again`)
          onReturn(shown.case_id)
        },
        (error: unknown) => toastFailure(`Not undone: ${toReason(error)}`),
      )
  }
  return {
    judged,
    judge,
    also,
    undo,
    dismiss: () => setJudged(null),
    expiry,
    setExpiry,
    /** What was seen of a case when its judgement was refused. */
    refusedOf: (caseId: string) => (refused?.caseId === caseId ? refused : undefined),
  }
}

const toReason = (error: unknown): string =>
  error instanceof ApiProblem ? error.message : 'the change was not sent.'

/** What the keys of judging do; of a case that is not shown yet, nothing. */
export function keysOfJudging(
  { judge, also, undo, dismiss }: ReturnType<typeof useJudging>,
  getSeen: () => Case | undefined,
): Record<string, () => void> {
  const keys: Record<string, () => void> = { u: undo, Escape: dismiss }
  for (const [key, to] of Object.entries(judgementKeys)) {
    keys[key] = () => {
      const shown = getSeen()
      if (shown !== undefined) judge(shown, to)
    }
  }
  for (const what of ['deny', 'allow', 'label'] as const) keys[alsoKeys[what]] = () => also(what)
  return keys
}
