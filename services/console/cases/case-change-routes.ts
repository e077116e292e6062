/** What operators do to a case: judge, snooze, assign, note, merge, split, and have it open. */
import {
  caseAssigneeBody,
  caseNoteSchema,
  casePath,
  caseSchema,
  judgedSchema,
  judgementBody,
  mergeBody,
  presenceSchema,
  snoozeBody,
  splitBody,
  splitSchema,
} from '#shared/core/cases/case-schemas.ts'
import { enterCase, leaveCase } from '#shared/io/cases/case-presence.ts'
import { addCaseNote, assignCase, snoozeCase } from '#shared/io/cases/change-case.ts'
import { judgeCase } from '#shared/io/cases/judge-case.ts'
import { caseNotFound, findCase } from '#shared/io/cases/list-cases.ts'
import { mergeCases, splitCase } from '#shared/io/cases/move-alerts.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { noteBody } from '../alerts/alert-schemas.ts'
import { actorOf, type ConsoleApp, type Principal, tenantsOf } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'

export type CaseChangeDeps = {
  postgres: Postgres
  /** The wall clock. */
  wallMs: () => number
}

/** Whose case is changed, and by whom. */
const toTarget = (request: { params: { case_id: string }; principal: Principal | null }) => ({
  caseId: request.params.case_id,
  scope: tenantsOf(request.principal),
  actor: actorOf(request.principal),
})

/** Adds the routes. */
export function addCaseChangeRoutes(app: ConsoleApp, deps: CaseChangeDeps): void {
  addJudgement(app, deps)
  addWork(app, deps)
  addMoves(app, deps)
  addPresence(app, deps)
}

function addJudgement(app: ConsoleApp, { postgres, wallMs }: CaseChangeDeps): void {
  app.post(
    '/cases/:case_id/judgement',
    {
      schema: {
        operationId: 'judgeCase',
        idempotency: 'kept',
        tags: ['Cases'],
        summary:
          'Set the disposition of the open alerts of a case; label and list in the same call',
        description:
          'Each alert has its own history entry, audit entry and webhook. Alerts, labels and ' +
          'list entries change in one transaction: all of them or nothing.',
        params: casePath,
        body: judgementBody,
        problems: ['case_not_found', 'case_changed', 'conflict'],
        response: { 200: judgedSchema },
      },
    },
    async (request, reply) => {
      const wanted = { ...toTarget(request), judgement: request.body, nowMs: wallMs() }
      return changeOnce(postgres, { request, reply }, (db) => judgeCase(db, wanted))
    },
  )
}

function addWork(app: ConsoleApp, { postgres, wallMs }: CaseChangeDeps): void {
  app.put(
    '/cases/:case_id/snooze',
    {
      schema: {
        operationId: 'snoozeCase',
        tags: ['Cases'],
        summary: 'Keep an open case out of the queue until a time, or wake it',
        params: casePath,
        body: snoozeBody,
        problems: ['case_not_found', 'conflict'],
        response: { 200: caseSchema },
      },
    },
    async (request) =>
      snoozeCase(postgres, {
        ...toTarget(request),
        untilMs: request.body.until,
        nowMs: wallMs(),
      }),
  )
  app.put(
    '/cases/:case_id/assignee',
    {
      schema: {
        operationId: 'assignCase',
        tags: ['Cases'],
        summary: 'Assign a case to an operator, or unassign it',
        params: casePath,
        body: caseAssigneeBody,
        problems: ['case_not_found', 'conflict'],
        response: { 200: caseSchema },
      },
    },
    async (request) =>
      assignCase(postgres, { ...toTarget(request), assignee: request.body.assignee }),
  )
  app.post(
    '/cases/:case_id/notes',
    {
      schema: {
        operationId: 'addCaseNote',
        idempotency: 'kept',
        tags: ['Cases'],
        summary: 'Add a note to a case',
        params: casePath,
        body: noteBody,
        problems: ['case_not_found', 'conflict'],
        response: { 201: caseNoteSchema },
      },
    },
    async (request, reply) => {
      const wanted = { ...toTarget(request), note: request.body.note }
      const added = await changeOnce(postgres, { request, reply }, (db) => addCaseNote(db, wanted))
      return reply.code(201).send(added)
    },
  )
}

function addMoves(app: ConsoleApp, { postgres }: CaseChangeDeps): void {
  app.post(
    '/cases/:case_id/merge',
    {
      schema: {
        operationId: 'mergeCase',
        idempotency: 'kept',
        tags: ['Cases'],
        summary: 'Merge a case into another one of the tenant',
        description:
          'The other case gets its alerts and notes, and from then on new alerts of its subject. ' +
          'The answer is the other case.',
        params: casePath,
        body: mergeBody,
        problems: ['case_not_found', 'conflict'],
        response: { 200: caseSchema },
      },
    },
    async (request, reply) => {
      const wanted = { ...toTarget(request), into: request.body.into }
      return changeOnce(postgres, { request, reply }, (db) => mergeCases(db, wanted))
    },
  )
  app.post(
    '/cases/:case_id/split',
    {
      schema: {
        operationId: 'splitCase',
        idempotency: 'kept',
        tags: ['Cases'],
        summary: 'Split alerts of a case off into a new one',
        params: casePath,
        body: splitBody,
        problems: ['case_not_found', 'conflict'],
        response: { 201: splitSchema },
      },
    },
    async (request, reply) => {
      const wanted = { ...toTarget(request), alertIds: request.body.alert_ids }
      const split = await changeOnce(postgres, { request, reply }, (db) => splitCase(db, wanted))
      return reply.code(201).send(split)
    },
  )
}

function addPresence(app: ConsoleApp, { postgres }: CaseChangeDeps): void {
  app.put(
    '/cases/:case_id/presence',
    {
      schema: {
        operationId: 'enterCase',
        tags: ['Cases'],
        summary: 'Tell that you have a case open, and learn who else has',
        description: 'It counts for 30 seconds, and renews the lease that you have from `next`.',
        params: casePath,
        problems: ['case_not_found'],
        response: { 200: presenceSchema },
      },
    },
    async (request) => {
      const { caseId, actor: operator } = await requireCase(request)
      return { here: await enterCase(postgres, { caseId, operator }) }
    },
  )
  app.delete(
    '/cases/:case_id/presence',
    {
      schema: {
        operationId: 'leaveCase',
        tags: ['Cases'],
        summary: 'Tell that you have left a case, which ends your lease',
        params: casePath,
        problems: ['case_not_found'],
        response: { 200: presenceSchema },
      },
    },
    async (request) => {
      const { caseId, actor: operator } = await requireCase(request)
      await leaveCase(postgres, { caseId, operator })
      return { here: [] }
    },
  )
  const requireCase = async (request: Parameters<typeof toTarget>[0]) => {
    const target = toTarget(request)
    if ((await findCase(postgres, target)) === null) throw caseNotFound(target.caseId)
    return target
  }
}
