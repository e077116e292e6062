/**
 * Fleets in which installs look like one phone and are not: phones of one model whose firmware
 * gives them one identifier, farms of equal emulators, backups that carry an identifier to another
 * model, and attackers who copy identifiers and leave out the rest.
 */
import type { Random } from '../../../deploy/fleet/phones/random.ts'
import {
  type Case,
  type MoreOptions,
  makePhone,
  makeSingles,
  type Phone,
  type SimulatedInstall,
  spanMs,
  startMs,
  toBoot,
  toInstall,
} from './simulated-installs.ts'

const ownersOfFirmware = 40
const emulatorsOfFarm = 20
const copiers = 250

export function makeHardFleets(random: Random, options: MoreOptions): SimulatedInstall[] {
  const { phones, victims, take } = options
  const made: SimulatedInstall[] = []
  const add = (phone: Phone, atMs: number, kind: Case, of = take()) => {
    const install = toInstall(phone, random, { atMs, phone: of, case: kind })
    made.push(install)
    return install
  }
  const anyMs = (from: number) => startMs + (from + (1 - from) * random.next()) * spanMs
  const makeAndroid = (): Phone => {
    const phone = makePhone(random)
    return phone.platform === 'android' ? phone : makeAndroid()
  }
  // One firmware and one farm in 20,000 phones.
  for (let at = 0; at < phones / 20_000; at++) {
    const model = makeAndroid()
    const drm = model.identifiers.media_drm_id!
    for (let owner = 0; owner < ownersOfFirmware; owner++) {
      const own = makeAndroid()
      const { build, osVersion, screen, model: name, memory } = model.singles
      const phone: Phone = {
        ...own,
        singles: { ...own.singles, build, osVersion, screen, model: name, memory },
        identifiers: { ...own.identifiers, media_drm_id: drm },
      }
      const atMs = anyMs(0)
      phone.bootAtMs = toBoot(random, atMs)
      const number = take()
      add(phone, atMs, 'shared firmware', number)
      // Half of them install the app again, before the phone is started again.
      if (random.chance(0.5)) add(phone, atMs + 3_600_000, 'shared firmware', number)
    }
    const farm = makeAndroid()
    const bootMs = anyMs(0)
    for (let emulator = 0; emulator < emulatorsOfFarm; emulator++) {
      const { identifiers, users } = makeAndroid()
      const media_drm_id = farm.identifiers.media_drm_id!
      const bootAtMs = bootMs + 1_000 * emulator
      const own = { ...farm, users, bootAtMs, identifiers: { ...identifiers, media_drm_id } }
      add(own, bootMs + 600_000 + 10_000 * emulator, 'farm')
    }
  }
  for (let at = 0; at < copiers; at++) {
    const victim = random.pick(victims)
    const atMs = anyMs(0.5)
    const own: Phone = { ...makePhone(random), identifiers: victim.identifiers }
    add({ ...own, bootAtMs: toBoot(random, atMs) }, atMs, 'copied whole')
    const { traits } = add(own, anyMs(0.5), 'copied without traits')
    const none = { hardware: null, model: null, memoryBytes: null, setup: null, bootAtMs: null }
    Object.assign(traits, none)
    addCarried(random, victims, { atMs: anyMs(0.5), add })
  }
  return made
}

/** The keychain item of an older SDK is restored on a new phone of another model. */
function addCarried(
  random: Random,
  victims: readonly Phone[],
  { atMs, add }: { atMs: number; add: (phone: Phone, atMs: number, kind: Case) => void },
): void {
  const old = random.pick(victims.filter(({ platform }) => platform === 'ios'))
  const { keychain_id: carried } = old.identifiers
  const identifiers = { keychain_id: carried!, vendor_id: random.hex(32) }
  const singles = makeSingles(random, 'ios')
  if (singles.model === old.singles.model) return
  add({ ...old, singles, identifiers, bootAtMs: toBoot(random, atMs) }, atMs, 'carried backup')
}
