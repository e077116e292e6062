/** What a client sends, and the answers of ingest. */
import type { BodyError } from './errors.ts'
import type { Action, Category, CategorySignals, Flag, SignalWarning } from './service-types.ts'

/**
 * The `signals` of a submission. A name that the catalog lacks is a type error, since it scores
 * nothing. Declare signals of your own as `Signals & { root: { own_check?: boolean } }`.
 */
export type Signals = { [Name in Category]: CategorySignals<Name> }

/** What one SDK or check reports: some categories. `mergeSignals` makes `Signals` of several. */
export type PartialSignals = Partial<Signals>

/** The body of `POST /v1/rasp/ingest`. */
export type Telemetry = {
  /** The tenant slug. */
  tenant_id: string
  /** Persisted, scoped to an install: 1 to 256 characters. */
  device_id: string
  /** Fresh for each app launch: 1 to 256 characters. */
  session_id: string
  user_id?: string | null
  account_id?: string | null
  /** ISO-8601 with an offset. Kept, never trusted for ordering. */
  occurred_at?: string
  /** The phone, by which it is recognised after the app was installed again. */
  device?: SentDevice | null
  /**
   * Asks for a `verdict_token`: what it is for, in your own words, and a random text that your
   * backend made for this one question. 1 to 128 characters each.
   */
  verdict?: { audience: string; nonce: string } | null
  sdk_meta: { sdk_version: string; platform: string; batch_type: string }
  /** What the client computed. Advisory: the service scores `signals`. */
  scorer: { rasp_score: number; rasp_action: string; rasp_flags: string[] }
  signals: Signals
}

/** What is known of a phone; what an SDK cannot measure is left out. */
export type SentDevice = {
  brand?: string
  model?: string
  os_version?: string
  build?: string
  /** Of the whole storage, not of what is free. */
  storage_bytes?: number
  memory_bytes?: number
  /** Width and height in pixels, the shorter side first: `1080x2424`. */
  screen?: string
  locale?: string
  time_zone?: string
  carrier?: string
  /** When the system started: ISO-8601 with an offset, or ms since 1970. */
  boot_at?: string | number
  /**
   * Ids that outlive the install, such as `keychain_id`, `vendor_id`, `media_drm_id` and
   * `android_id`, or of your own: at most 8, names of a-z, 0-9 and _, 1 to 256 characters each. The
   * service keeps keyed hashes of them.
   */
  identifiers?: Readonly<Record<string, string>>
}

/** The answer to accepted telemetry. */
export type IngestResult = {
  status: 'accepted'
  /** 0 to 100. */
  rasp_score: number
  /** The authoritative action. */
  rasp_action: Action
  /** The same for the same bytes. */
  event_id: string
  /** Absent where the tenant's clients are told the score and the action alone. */
  flags?: Flag[]
  /** Where the submission asked for a verdict: for your backend, see `verifyVerdict`. */
  verdict_token?: string
  /** In a sandbox tenant: signals and values that the catalog does not know. */
  warnings?: SignalWarning[]
}

/** A submission of a batch that the service refuses. Sending it again changes nothing. */
export type InvalidEvent = {
  status: 'invalid'
  code: 'invalid_body' | 'body_too_large'
  detail: string
  /** Paths are those of the submission. */
  errors?: BodyError[]
}

/** The answer to a batch: one entry for each submission, in its order. */
export type BatchResult = {
  accepted: number
  invalid: number
  events: (IngestResult | InvalidEvent)[]
}
