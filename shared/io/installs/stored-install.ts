/** The install whose key signed an event, as `telemetry` has it. */
import type { EventHeader } from '#shared/core/telemetry/event-batch.ts'

/** SQL: the columns of a `StoredInstall`, of `telemetry`. */
export const installColumns = `install_token as installToken, attested_key as attestedKey,
  assertion_counter as assertionCounter`

export type StoredInstall = {
  /** Empty when the tenant's own secret signed the event. */
  installToken: string
  /** Empty without one. */
  attestedKey: string
  /** 0 without an assertion. */
  assertionCounter: number
}

/** @returns the member of the event's head; undefined without an install */
export function toInstall({
  installToken,
  attestedKey,
  assertionCounter,
}: StoredInstall): EventHeader['install'] {
  if (installToken === '') return undefined
  return {
    token_id: installToken,
    attested_key: attestedKey === '' ? null : attestedKey,
    ...(assertionCounter === 0 ? {} : { counter: assertionCounter }),
  }
}
