/**
 * The submission of the public interface: its one schema. `fast-path.ts` recognizes the same
 * submissions without it; a property test holds the two equal.
 */
import { z } from 'zod'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import {
  clientFlagsMax,
  idCharactersMax,
  metaCharactersMax,
} from '#shared/core/base/limits/telemetry.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'

// C0 and C1 control characters and DEL are never part of an id.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
export const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/

/** Keys that other languages' object models act upon. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}

/** Whether a value is an object of JSON: no list, and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a device, session, user or account id can be. */
export const idSchema = z
  .string()
  .min(1)
  .max(idCharactersMax)
  .refine((id) => !controlCharacters.test(id), 'must not contain control characters')

const metaSchema = z.string().max(metaCharactersMax)
// The catalog checks what is inside; a record schema would copy every key of every event.
const categorySchema = z.custom<CategorySignals>(isObject, 'must be an object')

/** The submission of the public interface, settled; unknown extra fields are accepted and kept. */
export const telemetrySchema = z.looseObject({
  tenant_id: z.string().regex(tenantIdPattern),
  device_id: idSchema,
  session_id: idSchema,
  user_id: idSchema.optional(),
  account_id: idSchema.optional(),
  // Never a reason to refuse: stored as a time where `readOccurredAt` reads it as one.
  occurred_at: z.unknown().optional(),
  sdk_meta: z.looseObject({
    sdk_version: metaSchema,
    platform: metaSchema,
    batch_type: metaSchema,
  }),
  scorer: z.looseObject({
    rasp_score: z.number(),
    rasp_action: metaSchema,
    rasp_flags: z.array(metaSchema).max(clientFlagsMax),
  }),
  signals: z.looseObject({
    root: categorySchema,
    emulator: categorySchema,
    debugger: categorySchema,
    tamper: categorySchema,
    ecosystem: categorySchema,
    network: categorySchema,
  }),
})

export type Telemetry = z.infer<typeof telemetrySchema>

/**
 * Normalizes optional members: a null or empty `user_id` or `account_id`, which an SDK sends before
 * a login, becomes absent. The client's score, which is advisory, becomes a finite double.
 * @param value a parsed body; changed
 */
export function settleOptionals(value: Record<string, unknown>): void {
  for (const name of ['user_id', 'account_id']) {
    // The member stays, so that a body has as many members as its text.
    if (value[name] === null || value[name] === '') value[name] = undefined
  }
  const { scorer } = value
  if (!isObject(scorer) || typeof scorer.rasp_score !== 'number') return
  const most = Number.MAX_VALUE
  scorer.rasp_score = Math.min(Math.max(scorer.rasp_score, -most), most)
}

/** @param text the stored body of an accepted event */
export function readStoredTelemetry(text: string): Telemetry {
  const body = JSON.parse(text) as Record<string, unknown>
  settleOptionals(body)
  return body as Telemetry
}
