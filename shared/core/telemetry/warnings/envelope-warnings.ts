/**
 * Warnings about a valid submission beside its signals: optional members that are misspelt or
 * misplaced, values that are accepted and mean nothing, and ids that many devices share.
 */
import { readOccurredAt } from '#shared/core/base/instants.ts'
import {
  manyUnknownSignals,
  signalPathsPerTenantMax,
  warningNameCharactersMax,
  warningNamesMax,
} from '#shared/core/base/limits/telemetry.ts'
import { parseAddress } from '#shared/core/network/address.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { categories, platforms, type Signals } from '#shared/core/signals/signal-definition.ts'
import type { ClientAddress } from '#shared/core/tenants/client-address.ts'
import { measureScoreMismatch } from '#shared/core/velocity/score-mismatch.ts'
import { type Install, readInstall } from '../install.ts'
import { findPlaceholderIds, isPlaceholderId } from '../placeholder-ids.ts'
import type { SignalWarning } from '../signal-warnings.ts'
import { isObject, readClientAction, readClientScore, type Telemetry } from '../submission.ts'
import { findUnknownSignals, unknownSignalsMax } from '../unknown-signals.ts'
import { traitSizes, traitTexts, warnOfDevice } from './device-warnings.ts'
import { findNearest, toChangesMax, toPlain } from './nearest-name.ts'
import { findUnusual } from './unusual-ids.ts'

/** What the answer says of the submission. */
export type Judged = {
  /** The score of its signals; null when a test device forces one. */
  raspScore: number | null
  receivedAtMs: number
  /** Which address the tenant measures; left out where that is not known. */
  clientAddress?: ClientAddress
}

type Member =
  | 'user_id'
  | 'account_id'
  | 'occurred_at'
  | 'verdict'
  | 'client_ip'
  | 'identifiers'
  | keyof Install

/** Optional members: where each is read, and the names that SDKs and people give it. */
const optionals: Record<Member, { path: string; names: readonly string[] }> = {
  user_id: { path: 'user_id', names: ['user_id', 'user', 'uid', 'customer_id', 'member_id'] },
  account_id: { path: 'account_id', names: ['account_id', 'account', 'account_number'] },
  occurred_at: {
    path: 'occurred_at',
    names: ['occurred_at', 'timestamp', 'event_time', 'created_at', 'sent_at'],
  },
  verdict: { path: 'verdict', names: ['verdict', 'verdict_request', 'verdict_token'] },
  client_ip: { path: 'client_ip', names: ['client_ip'] },
  appVersion: {
    path: 'app.version',
    names: ['app_version', 'version', 'version_name', 'client_version'],
  },
  osVersion: { path: 'device.os_version', names: ['os_version', 'system_version', 'os'] },
  deviceBrand: {
    path: 'device.brand',
    names: ['brand', 'device_brand', 'manufacturer', 'device_manufacturer'],
  },
  deviceModel: { path: 'device.model', names: ['model', 'device_model', 'device_name'] },
  identifiers: {
    path: 'device.identifiers',
    names: ['identifiers', 'device_identifiers', 'device_ids', 'hardware_ids'],
  },
}

/** The members of each object that are read there. */
const read: Record<string, readonly string[]> = {
  '': [
    ...['tenant_id', 'device_id', 'session_id', 'user_id', 'account_id', 'occurred_at'],
    ...['sdk_meta', 'scorer', 'signals', 'app', 'device', 'verdict', 'client_ip'],
    ...['app_version', 'os_version', 'device_brand', 'device_model'],
  ],
  sdk_meta: [
    ...['sdk_version', 'platform', 'batch_type'],
    ...['app_version', 'os_version', 'device_brand', 'device_model'],
  ],
  scorer: ['rasp_score', 'rasp_action', 'rasp_flags'],
  app: ['version'],
  device: ['os_version', 'brand', 'model', 'identifiers', ...traitTexts, ...traitSizes, 'boot_at'],
}

/** Finds what a valid submission has beside its signals that is probably a mistake. */
export function findEnvelopeWarnings(body: Telemetry, judged: Judged): SignalWarning[] {
  return [
    ...warnOfIds(body),
    ...warnOfMembers(body),
    ...warnOfTime(body.occurred_at, judged.receivedAtMs),
    ...warnOfAddress(body.client_ip, judged.clientAddress),
    ...warnOfTexts(body),
    ...warnOfDevice(body),
    ...warnOfSdk(body.sdk_meta),
    ...warnOfScorer(body.scorer, judged.raspScore),
    ...warnOfEmptySignals(body),
    ...warnOfManyNames(body),
  ]
}

const warn = (
  code: SignalWarning['code'],
  path: string,
  message: string,
  nearest: string | null = null,
): SignalWarning => ({ path: `$.${path}`, code, message, nearest })

function warnOfIds(body: Telemetry): SignalWarning[] {
  const warnings = findPlaceholderIds(body).map((field) =>
    warn('placeholder_id', field, 'is a placeholder that many share: nothing is counted by it'),
  )
  const { device_id: device, session_id: session, user_id: user } = body
  if (session === device) {
    const message = 'equals device_id; send an id that is new at each launch of the app'
    warnings.push(warn('same_id', 'session_id', message))
  }
  if (user !== undefined && (user === device || user === session)) {
    const other = user === device ? 'device_id' : 'session_id'
    warnings.push(warn('same_id', 'user_id', `equals ${other}; send the id of the user or none`))
  }
  for (const field of ['device_id', 'session_id', 'user_id', 'account_id'] as const) {
    const message = findUnusual(body[field] ?? '')
    if (message !== null) warnings.push(warn('unusual_id', field, message))
  }
  return warnings
}

const placesOf = (body: Telemetry): [string, unknown][] => [
  ['', body],
  ['sdk_meta', body.sdk_meta],
  ['scorer', body.scorer],
  ['app', body.app],
  ['device', body.device],
]

/** Members that are not read and look like an optional one that is absent. */
function warnOfMembers(body: Telemetry): SignalWarning[] {
  const warnings: SignalWarning[] = []
  const absent = findAbsent(body)
  let names = 0
  for (const [place, value] of placesOf(body)) {
    if (!isObject(value)) continue
    for (const key in value) {
      if (read[place]!.includes(key)) continue
      if (++names > warningNamesMax) return warnings
      if (key.length > warningNameCharactersMax) continue
      const member = absent.find((one) => isLike(key, one, place))
      if (member === undefined) continue
      const { path } = optionals[member]
      const shown = place === '' ? key : `${place}.${key}`
      warnings.push(
        warn('unknown_member', shown, `is kept and not read; did you mean ${path}?`, path),
      )
      absent.splice(absent.indexOf(member), 1)
    }
  }
  return warnings
}

function findAbsent(body: Telemetry): Member[] {
  const install = readInstall(body)
  return (Object.keys(optionals) as Member[]).filter((member) => {
    const value = member in install ? install[member as keyof Install] : readPath(body, member)
    return value === undefined || value === null || value === ''
  })
}

const readPath = (body: Telemetry, member: Member): unknown =>
  optionals[member].path
    .split('.')
    .reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), body)

function isLike(key: string, member: Member, place: string): boolean {
  const { path, names } = optionals[member]
  // The members of an object have the names without its own: a version is that of the app only
  // within `app`.
  const [owner] = path.split('.')
  const usable = names.filter((name) => name !== 'version' || place === owner)
  const plain = toPlain(key)
  if (usable.some((name) => toPlain(name) === plain)) return true
  return findNearest(key, [usable[0]!], toChangesMax(plain)) !== null
}

/** How far ahead a client's clock is plausible. */
const aheadMsMax = 24 * 60 * 60 * 1000

function warnOfTime(value: unknown, receivedAtMs: number): SignalWarning[] {
  if (value === undefined || value === null) return []
  const ms = readOccurredAt(value)
  if (ms === null) {
    const isSeconds = typeof value === 'number' && readOccurredAt(value * 1000) !== null
    const hint = isSeconds ? 'seconds; send milliseconds since 1970' : 'no time with its offset'
    return [warn('unreadable_value', 'occurred_at', `is ${hint}: it is kept and not stored`)]
  }
  if (ms <= receivedAtMs + aheadMsMax) return []
  return [warn('out_of_range', 'occurred_at', 'is more than a day ahead of the clock here')]
}

function warnOfAddress(value: unknown, taken?: ClientAddress): SignalWarning[] {
  if (typeof value !== 'string') return []
  if (taken === 'connection') {
    const message =
      'is not read: the address that the request comes from counts. An operator changes that: ' +
      '`di tenants client-address SLUG body`'
    return [warn('unreadable_value', 'client_ip', message)]
  }
  if (parseAddress(value) !== null) return []
  return [warn('unreadable_value', 'client_ip', 'is no IP address, so nothing is measured of it')]
}

/** Optional texts of another type, which nothing reads. */
function warnOfTexts(body: Telemetry): SignalWarning[] {
  const warnings: SignalWarning[] = []
  for (const place of ['app', 'device'] as const) {
    const value = body[place]
    if (value !== undefined && value !== null && !isObject(value)) {
      const example = read[place]![0]
      const message = `is not read: it must be an object, such as {"${example}": "1.2.0"}`
      warnings.push(warn('unreadable_value', place, message))
    }
  }
  for (const [place, value] of placesOf(body)) {
    if (!isObject(value)) continue
    for (const name of ['version', 'os_version', 'brand', 'model', 'app_version'] as const) {
      if (!read[place]!.includes(name)) continue
      const text = value[name]
      if (text === undefined || text === null || typeof text === 'string') continue
      const path = place === '' ? name : `${place}.${name}`
      warnings.push(warn('unreadable_value', path, 'is not read: it must be a text'))
    }
  }
  return warnings
}

/** Other words for the platforms, without case and separators. */
const platformWords: Record<string, (typeof platforms)[number]> = {
  iphone: 'ios',
  iphoneos: 'ios',
  ipad: 'ios',
  ipados: 'ios',
  apple: 'ios',
  google: 'android',
}

function warnOfSdk({ sdk_version: version, platform }: Telemetry['sdk_meta']): SignalWarning[] {
  const warnings: SignalWarning[] = []
  if (version === '' || isPlaceholderId(version)) {
    const message = 'is no version: suppressions and counts by SDK version miss this SDK'
    warnings.push(warn('unknown_value', 'sdk_meta.sdk_version', message))
  }
  if (platforms.some((one) => one === platform)) return warnings
  const nearest = platformWords[toPlain(platform)] ?? findNearest(platform, platforms)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  const message = `is neither android nor ios: it counts as another platform${hint}`
  return [...warnings, warn('unknown_value', 'sdk_meta.platform', message, nearest)]
}

function warnOfScorer(scorer: Telemetry['scorer'], raspScore: number | null): SignalWarning[] {
  const [score, action] = [readClientScore(scorer), readClientAction(scorer)]
  const warnings = warnOfForms(scorer)
  if (score !== -1 && !(score >= 0 && score <= 100)) {
    const message = 'is not from 0 to 100, so it is compared with nothing; -1 is no score'
    warnings.push(warn('out_of_range', 'scorer.rasp_score', message))
  } else if (!Number.isInteger(score)) {
    const message = 'is not a whole number: a score goes from 0 to 100, not from 0 to 1'
    warnings.push(warn('out_of_range', 'scorer.rasp_score', message))
  }
  if (action !== '' && !actions.some((one) => one === action)) {
    const nearest = findNearest(action.slice(0, warningNameCharactersMax), actions)
    const hint = nearest === null ? '' : `; did you mean ${nearest}?`
    const message = `is none of ${actions.join(', ')}, nor empty${hint}`
    warnings.push(warn('unknown_value', 'scorer.rasp_action', message, nearest))
  }
  const threshold = defaultPolicy.scoreMismatch?.threshold ?? 100
  if (raspScore !== null && measureScoreMismatch(scorer, raspScore) > threshold) {
    const message =
      `is far from ${raspScore}, the score of the signals; ` +
      'send -1 and an empty rasp_action when the client computes none'
    warnings.push(warn('score_mismatch', 'scorer.rasp_score', message))
  }
  return warnings
}

function warnOfForms(sent: Telemetry['scorer']): SignalWarning[] {
  const { rasp_score: score, rasp_action: action, rasp_flags: flags } = sent
  const areFlags = Array.isArray(flags) && flags.every((flag) => typeof flag === 'string')
  const forms: [name: string, isRight: boolean, form: string][] = [
    ['rasp_score', typeof score === 'number', 'a number'],
    ['rasp_action', typeof action === 'string', 'a string'],
    ['rasp_flags', areFlags, 'an array of strings'],
  ]
  return forms
    .filter(([, isRight]) => !isRight)
    .map(([name, , form]) => {
      const message = `should be ${form}; the event is taken, as the server scores the signals`
      return warn('wrong_type', `scorer.${name}`, message)
    })
}

function warnOfEmptySignals({ signals }: Telemetry): SignalWarning[] {
  for (const category of categories) {
    for (const name in signals[category]) if (signals[category][name] !== null) return []
  }
  return [warn('no_signals', 'signals', 'has no measured signal, so the score is 0')]
}

function warnOfManyNames({ signals }: Telemetry): SignalWarning[] {
  const { length } = findUnknownSignals(signals as Signals)
  if (length < manyUnknownSignals) return []
  const most = length === unknownSignalsMax ? `${length} or more` : `${length}`
  const message =
    `has ${most} names that are not in the catalog; of all the tenant sends, ` +
    `${signalPathsPerTenantMax} become columns for analysts. An operator frees them: ` +
    '`di signals free`'
  return [warn('many_unknown_signals', 'signals', message)]
}
