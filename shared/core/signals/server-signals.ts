/**
 * Server signals: facts that the service itself observed or verified. They travel in the head of an
 * event, so nothing in a body can set, change or remove one.
 */
import { z } from 'zod'
import type { CategorySignals } from './signal-definition.ts'

/** The categories of server signals, beside the six of the client. */
export const serverCategories = ['attestation', 'connection'] as const
export type ServerCategory = (typeof serverCategories)[number]

/** What the service knows of one event; a category without a signal is absent. */
export type ServerSignals = Partial<Record<ServerCategory, CategorySignals>>

/** As the head of an event has them; a later edge may know more of them. */
export const serverSignalsSchema = z.object({
  attestation: z.record(z.string(), z.unknown()).optional(),
  connection: z.record(z.string(), z.unknown()).optional(),
})
