/**
 * The outcome of an alert of a simulated history: its disposition with the time, and the delivery
 * of its webhook.
 */
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { hourMs } from '#shared/core/base/instants.ts'
import type { Phone } from '../phones/population.ts'
import type { Random } from '../phones/random.ts'
import type { Stories } from './history-plan.ts'

const fraud = new Set([
  ...['emulator-farm', 'cloud-phone', 'frida-android', 'frida-ios', 'xposed', 'repackaged'],
  ...['spoofed-identity', 'account-farm', 'scripted-sessions', 'malware-victim'],
])
const odd = new Set(['rooted-magisk', 'rooted-kernelsu', 'jailbroken', 'gps-spoofer', 'app-cloner'])

/** Whether phones of this kind belong to fraudsters or their victims. */
export const isFraudKind = (name: string): boolean => fraud.has(name)

/** `atMs` is null for an alert without a review: it stays OPEN. */
export type Verdict = { to: Disposition; atMs: number | null }

/** @param detected the detected signals at the alert */
export function judgeAlert(
  { phone, detected }: { phone: Phone; detected: readonly string[] },
  createdAtMs: number,
  { release, movedTo, rooted }: Stories,
  random: Random,
): Verdict {
  const atMs = createdAtMs + random.int(1, 48) * hourMs
  const isRelease =
    phone.sdk.version === release.sdkVersion &&
    phone.kind.name !== 'xposed' &&
    detected.includes(release.signal)
  if (phone.deviceId === movedTo.deviceId) return { to: 'CONFIRMED', atMs }
  if (rooted.some(({ deviceId }) => deviceId === phone.deviceId)) return { to: 'CONFIRMED', atMs }
  const { name } = phone.kind
  const [confirmed, refuted] = isRelease
    ? [0, 0.8]
    : isFraudKind(name)
      ? [0.7, 0.05]
      : odd.has(name)
        ? [0.2, 0.4]
        : [0.02, 0.7]
  const drawn = random.next()
  if (drawn < confirmed) return { to: 'CONFIRMED', atMs }
  if (drawn < confirmed + refuted) return { to: 'FALSE_POSITIVE', atMs }
  return drawn < confirmed + refuted + 0.1 ? { to: 'REVIEWED', atMs } : { to: 'OPEN', atMs: null }
}

/**
 * The course of a delivery: the start of each attempt, relative to its alert, and whether the last
 * failed.
 */
export type DeliveryCourse = { delaysMs: number[]; failed: boolean }

/** Most are delivered at once, some after retries, a few never. */
export function drawDelivery(random: Random): DeliveryCourse {
  const fate = random.next()
  const delaysMs = [random.int(40, 400)]
  if (fate < 0.06) delaysMs.push(5_500, 36_000, 160_000, random.int(700_000, 2_400_000))
  return { delaysMs, failed: fate < 0.015 }
}
