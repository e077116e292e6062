/**
 * Root keys that count for sandbox tenants alone, named in a file: for keystores of one's own
 * making. Live tenants trust the roots of Google and Apple and no others.
 */
import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { type AttestationRoots, attestationRoots } from '#shared/core/attestation/roots.ts'
import { testRootsBytesMax } from '#shared/core/base/limits/attestation.ts'
import { addRoots } from '#shared/core/installs/check-evidence.ts'

const rootSchema = z
  .strictObject({ name: z.string().min(1).max(100), public_key: z.string().refine(isPublicKey) })
  .transform(({ name, public_key: publicKeyInfo }) => ({ name: `test: ${name}`, publicKeyInfo }))

const fileSchema = z.strictObject({
  key_attestation: z.array(rootSchema).max(16).default([]),
  app_attest: z.array(rootSchema).max(16).default([]),
})

/** Which roots a tenant trusts. */
export type FindRoots = (environment: 'live' | 'sandbox') => AttestationRoots

/**
 * @param file `{"key_attestation":[{"name","public_key"}],"app_attest":[...]}` with
 *   SubjectPublicKeyInfo in base64; undefined for none
 * @throws Error that says what is wrong with it
 */
export function readTestRoots(file: string | undefined): FindRoots {
  if (file === undefined) return () => attestationRoots
  const sandbox = addRoots(attestationRoots, parseRoots(readText(file)))
  return (environment) => (environment === 'sandbox' ? sandbox : attestationRoots)
}

const fault = (why: string) => new Error(`the file of ATTESTATION_TEST_ROOTS_FILE ${why}`)

function readText(file: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch {
    throw fault('cannot be read')
  }
  if (bytes.length > testRootsBytesMax) throw fault('is larger than 64 KiB')
  return bytes.toString('utf8')
}

function parseRoots(text: string): AttestationRoots {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw fault('is not JSON')
  }
  const parsed = fileSchema.safeParse(value)
  if (!parsed.success) {
    const path = parsed.error.issues[0]?.path.join('.')
    throw fault(`has another form${path ? ` at ${path}` : ''}`)
  }
  const { key_attestation: keyAttestation, app_attest: appAttest } = parsed.data
  return { keyAttestation, appAttest }
}

/** In the one spelling by which a root is matched. */
function isPublicKey(text: string): boolean {
  try {
    const der = Buffer.from(text, 'base64')
    if (der.toString('base64') !== text) return false
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    return key.export({ format: 'der', type: 'spki' }).equals(der)
  } catch {
    return false
  }
}
