/** Routes of the keys that sign verdicts: list and rotate. */
import { z } from 'zod'
import { verdictKeyStates } from '#shared/core/verdicts/verdict-keys.ts'
import { listVerdictKeys } from '#shared/io/verdicts/verdict-key-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { rotateKeys, type VerdictKeyDeps } from './manage-verdict-keys.ts'

const keysSchema = z
  .object({
    data: z.array(
      z.object({
        kid: z.string(),
        state: z
          .enum(verdictKeyStates)
          .describe('next: published, signs after a rotation; previous: published, signs nothing'),
        created_at: z.string(),
        current_since: z.string().nullable(),
        replaced_at: z.string().nullable(),
        kept_until: z
          .string()
          .nullable()
          .describe('until when it is published; null for as long as it is needed'),
      }),
    ),
  })
  .meta({ id: 'VerdictKeyList' })

const rotateBody = z
  .strictObject({
    revoke: z
      .boolean()
      .default(false)
      .describe(
        'withdraw the current key at once, because it may be known to others: tokens that it signed ' +
          'fail, and so do new ones at verifiers that do not fetch keys for an unknown kid',
      ),
  })
  .nullish()

/** Adds the routes. */
export function addVerdictKeyRoutes(app: ConsoleApp, deps: VerdictKeyDeps): void {
  app.get(
    '/verdict-keys',
    {
      schema: {
        operationId: 'listVerdictKeys',
        tags: ['Credentials'],
        summary: 'The keys that sign verdict tokens, without their private halves',
        response: { 200: keysSchema },
      },
    },
    async () => ({ data: await listVerdictKeys(deps.postgres) }),
  )
  app.post(
    '/verdict-keys/rotate',
    {
      schema: {
        operationId: 'rotateVerdictKeys',
        tags: ['Credentials'],
        summary: 'Sign verdict tokens with the next key; returns once every edge does',
        description:
          'The next key has to be published for eleven minutes, so that every copy of the keys has it. ' +
          'The key before stays published until its last token has expired.',
        body: rotateBody,
        problems: ['conflict'],
        response: { 200: keysSchema },
      },
    },
    async ({ body, principal }) => ({
      data: await rotateKeys(deps, { actor: actorOf(principal), revoke: body?.revoke ?? false }),
    }),
  )
}
