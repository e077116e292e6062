/** A usual mistake of an integrator: what is sent, and the answer that says what to do. */

/** One HTTP call; a GET without body by default. */
export type Sent = {
  method?: string
  path: string
  headers: Record<string, string>
  body?: string | Uint8Array | undefined
}

/** A mistake. `Right` is what a right call is made of. */
export type Mistake<Right> = {
  name: string
  make: (right: Right) => Sent
  status: number
  /** The `code` of the problem; null for a 200. */
  code: string | null
  /** Texts that the answer has, so that its reader knows what to change. */
  says: string[]
}

/**
 * What a person reads in an answer: its detail, each error, the signature's form, warnings, and the
 * errors of each event of a batch.
 */
export function readWords(answer: Record<string, unknown>): string {
  const { detail, errors = [], warnings = [], signature_form: form, received } = answer as Words
  const { events = [] } = answer as Words
  const bytes = received === undefined ? '' : `received ${received.bytes} bytes`
  return [
    detail ?? '',
    ...errors.map(({ path, message }) => `${path} ${message}`),
    ...(form === undefined ? [] : [`${form}, ${bytes}`]),
    ...warnings.map(({ path, message, nearest }) => `${path} ${message}, nearest ${nearest}`),
    ...events.flatMap(({ errors: faults = [] }, index) =>
      faults.map(({ path, message }) => `events[${index}] ${path} ${message}`),
    ),
  ].join('\n')
}

type Words = {
  detail?: string
  errors?: { path: string; message: string }[]
  warnings?: { path: string; message: string; nearest: string | null }[]
  signature_form?: string
  events?: { errors?: { path: string; message: string }[] }[]
  received?: { bytes: number; sha256: string }
}
