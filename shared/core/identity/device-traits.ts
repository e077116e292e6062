/** What members of `device` in a submission are read as traits of a phone. */
import { metaCharactersMax } from '../base/limits/telemetry.ts'

/** A longer text is no trait, since each key of an install repeats it. */
export const isTraitText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= metaCharactersMax

/** A whole number of bytes. */
export const isTraitSize = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) > 0
