/**
 * Password hashes: argon2id of Node's own crypto, in the PHC string format. A bounded number of
 * hashes runs at once, so that sign-ins take neither the memory nor the thread pool of the process.
 */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { knownHashes, strangerHashes } from '#shared/core/base/limits/tenants.ts'
import { normalizePassword } from '#shared/core/operators/password-rules.ts'
import { createTenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'

export type HashCost = { memory: number; passes: number; parallelism: number }

/** RFC 9106 section 4, the second recommended option: 64 MiB, three passes, four lanes. */
const costDefault: HashCost = { memory: 64 * 1024, passes: 3, parallelism: 4 }
const saltBytes = 16
const tagBytes = 32

export type PasswordHasher = {
  /** @returns the PHC string, or null when the queue is full */
  hash: (password: string) => Promise<string | null>
  /**
   * Compares in the same time whether there is a hash or not.
   * @param stored the PHC string; null when there is no such account
   * @param stranger the source address of a caller that no sign-in is known of; null for others
   * @returns null when the queue is full
   */
  verify: (
    password: string,
    stored: string | null,
    stranger?: string | null,
  ) => Promise<boolean | null>
}

const phcPattern =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/

type DeriveKey = (algorithm: 'argon2id', parameters: Argon2Parameters) => Promise<Buffer>

type HashParts = HashCost & { salt: Buffer; tag: Buffer }

/**
 * Makes the one hasher of a process.
 * @param cost of new hashes; a stored one has its own in its text
 * @param deriveKey argon2, so that a test can count its calls
 */
export function createPasswordHasher(
  cost: HashCost = costDefault,
  deriveKey: DeriveKey = promisify(argon2),
): PasswordHasher {
  const known = createTenantSemaphore(knownHashes)
  const strangers = createTenantSemaphore(strangerHashes)
  const absent: HashParts = { ...cost, salt: randomBytes(saltBytes), tag: randomBytes(tagBytes) }
  const limited = async <T>(stranger: string | null, work: () => Promise<T>): Promise<T | null> => {
    const permit = await (stranger === null ? known.acquire('') : strangers.acquire(stranger))
    if (permit === null) return null
    try {
      return await work()
    } finally {
      permit.release()
    }
  }
  return {
    hash: (password) =>
      limited(null, async () => {
        const salt = randomBytes(saltBytes)
        return toPhc({ ...cost, salt, tag: await derive(deriveKey, password, { ...cost, salt }) })
      }),
    verify: (password, stored, stranger = null) =>
      limited(stranger, async () => {
        const parts = stored === null ? absent : parsePhc(stored)
        const tag = await derive(deriveKey, password, parts)
        return timingSafeEqual(tag, parts.tag) && stored !== null
      }),
  }
}

function derive(
  deriveKey: DeriveKey,
  password: string,
  { salt, memory, passes, parallelism }: Omit<HashParts, 'tag'>,
): Promise<Buffer> {
  return deriveKey('argon2id', {
    message: normalizePassword(password),
    nonce: salt,
    memory,
    passes,
    parallelism,
    tagLength: tagBytes,
  })
}

function toPhc({ memory, passes, parallelism, salt, tag }: HashParts): string {
  const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encode(salt)}$${encode(tag)}`
}

/** @throws Error when the text is of another form: the database holds only ours */
function parsePhc(text: string): HashParts {
  const match = phcPattern.exec(text)
  if (match === null) throw new Error('a stored password hash has an unknown form')
  const [memory, passes, parallelism] = match.slice(1, 4).map(Number) as [number, number, number]
  const [salt, tag] = match.slice(4).map((part) => Buffer.from(part, 'base64'))
  return { memory, passes, parallelism, salt: salt!, tag: tag! }
}
