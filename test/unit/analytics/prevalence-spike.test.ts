// A bad release is found on its first day. A steady prevalence raises nothing, in fleets of any
// size and with any number of tested signals.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findPrevalenceSpike,
  type PrevalenceSample,
  type PrevalenceSamples,
  spikeEndLimits,
} from '#shared/core/analytics/prevalence-spike.ts'
import { createRandom, type Random } from '../../../deploy/fleet/phones/random.ts'

const days = (count: number, devices: number, fleet: number): PrevalenceSample[] =>
  Array.from({ length: count }, () => ({ devices, fleet }))
const noDevices = { devices: 0, fleet: 0 }

describe('a prevalence spike', () => {
  it('is found on the first day of a bad release, by its own history and by other versions', () => {
    const found = findPrevalenceSpike({
      current: { devices: 60, fleet: 200 },
      earlier: days(14, 2, 200),
      elsewhere: { devices: 10, fleet: 1_000 },
    })
    expect(found).toMatchObject({
      prevalence: 0.3,
      earlierPrevalence: 0.01,
      elsewherePrevalence: 0.01,
    })
    expect(found?.zScore).toBeGreaterThan(7)
  })

  it('is found in a new version by comparing with other versions alone', () => {
    const current = { devices: 60, fleet: 200 }
    const found = findPrevalenceSpike({
      current,
      earlier: [],
      elsewhere: { devices: 9, fleet: 900 },
    })
    expect(found).toMatchObject({ earlierPrevalence: null, elsewherePrevalence: 0.01 })
  })

  it('is found in the only version by comparing with its past alone', () => {
    const current = { devices: 60, fleet: 200 }
    expect(
      findPrevalenceSpike({ current, earlier: days(5, 2, 200), elsewhere: noDevices }),
    ).toMatchObject({
      elsewherePrevalence: null,
    })
  })

  it('is not found when all versions rise together, as in an attack', () => {
    const current = { devices: 60, fleet: 200 }
    const elsewhere = { devices: 300, fleet: 1_000 }
    expect(findPrevalenceSpike({ current, earlier: days(14, 2, 200), elsewhere })).toBeNull()
  })

  it('is not found where a version always had a higher prevalence than others', () => {
    const current = { devices: 60, fleet: 200 }
    const elsewhere = { devices: 10, fleet: 1_000 }
    expect(findPrevalenceSpike({ current, earlier: days(14, 58, 200), elsewhere })).toBeNull()
  })

  it('is not found without history and other versions to compare with', () => {
    const current = { devices: 200, fleet: 200 }
    expect(findPrevalenceSpike({ current, earlier: [], elsewhere: noDevices })).toBeNull()
    const few = { devices: 0, fleet: 12 }
    expect(findPrevalenceSpike({ current, earlier: [few], elsewhere: few })).toBeNull()
  })

  it('is not found among few devices, at any prevalence', () => {
    for (const fleet of [1, 5, 29]) {
      const current = { devices: fleet, fleet }
      const elsewhere = { devices: 0, fleet: 10_000 }
      expect(findPrevalenceSpike({ current, earlier: [], elsewhere })).toBeNull()
    }
  })

  it('is not found for a significant but tiny change in a large fleet', () => {
    const current = { devices: 60_000, fleet: 1_000_000 }
    const elsewhere = { devices: 50_000, fleet: 1_000_000 }
    expect(findPrevalenceSpike({ current, earlier: [], elsewhere })).toBeNull()
  })

  it('needs a larger rise where days usually differ', () => {
    const wild = [0.01, 0.2, 0.05, 0.3, 0.02, 0.25, 0.1].map((prevalence) => ({
      devices: Math.round(prevalence * 1_000),
      fleet: 1_000,
    }))
    const current = { devices: 330, fleet: 1_000 }
    expect(findPrevalenceSpike({ current, earlier: wild, elsewhere: noDevices })).toBeNull()
    expect(
      findPrevalenceSpike({ current, earlier: days(7, 130, 1_000), elsewhere: noDevices }),
    ).not.toBeNull()
  })

  it('ends at a lower prevalence than it starts', () => {
    const samples: PrevalenceSamples = {
      current: { devices: 12, fleet: 200 },
      earlier: days(14, 2, 200),
      elsewhere: { devices: 10, fleet: 1_000 },
    }
    expect(findPrevalenceSpike(samples)).toBeNull()
    expect(findPrevalenceSpike(samples, spikeEndLimits)).not.toBeNull()
  })

  it('reports exactly the prevalences of its input', () => {
    const day = fc
      .tuple(fc.nat(5_000), fc.double({ min: 0, max: 1, noNaN: true }))
      .map(([fleet, prevalence]) => ({ fleet, devices: Math.round(fleet * prevalence) }))
    fc.assert(
      fc.property(day, fc.array(day, { maxLength: 21 }), day, (current, earlier, elsewhere) => {
        const found = findPrevalenceSpike({ current, earlier, elsewhere })
        if (found === null) return
        expect(current.fleet).toBeGreaterThanOrEqual(30)
        expect(found.zScore).toBeGreaterThanOrEqual(5)
        expect(Number.isFinite(found.zScore)).toBe(true)
        for (const prevalence of [found.earlierPrevalence, found.elsewherePrevalence]) {
          if (prevalence !== null)
            expect(found.prevalence - prevalence).toBeGreaterThanOrEqual(0.05)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

/** Draws how many of `count` devices have something, each with the same chance. */
function drawDevices(random: Random, count: number, chance: number): number {
  if (count > 400) {
    // The normal approximation is close enough and a thousand times faster.
    const normal =
      Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
    const drawn = Math.round(count * chance + normal * Math.sqrt(count * chance * (1 - chance)))
    return Math.min(count, Math.max(0, drawn))
  }
  let devices = 0
  for (let at = 0; at < count; at++) if (random.chance(chance)) devices++
  return devices
}

describe('a stable prevalence', () => {
  const seed = 20_260_701

  it.each([
    ['small fleets', 20, 120],
    ['middling fleets', 120, 2_000],
    ['large fleets', 2_000, 200_000],
  ])('of %s raise no alarm in 20,000 looks', (name, least, most) => {
    const random = createRandom(seed, name)
    let alarms = 0
    for (let look = 0; look < 20_000; look++) {
      // Most prevalences are small; each version and platform adds its own.
      const chance = Math.min(0.95, random.exponential(0.08))
      const size = () => random.int(least, most)
      const fleet = size()
      const draw = (count: number) => ({
        fleet: count,
        devices: drawDevices(random, count, chance),
      })
      const samples = {
        current: draw(Math.round(fleet * (0.7 + 0.6 * random.next()))),
        earlier: Array.from({ length: random.int(0, 21) }, () => draw(fleet)),
        elsewhere: draw(size()),
      }
      if (findPrevalenceSpike(samples) !== null) alarms++
    }
    expect([`seed ${seed}`, alarms]).toEqual([`seed ${seed}`, 0])
  })

  it('raise no alarm when weekends differ and devices return every day', () => {
    const random = createRandom(seed, 'weekends')
    let alarms = 0
    for (let look = 0; look < 5_000; look++) {
      const chance = Math.min(0.5, random.exponential(0.08))
      const size = random.int(40, 3_000)
      // The same devices every day, and on one day in seven a different set.
      const same = drawDevices(random, size, chance)
      const offset = random.int(0, 6)
      const earlier = Array.from({ length: 21 }, (_, at) => ({
        fleet: size,
        devices: (at + offset) % 7 === 0 ? drawDevices(random, size, 1.5 * chance) : same,
      }))
      const current = { fleet: size, devices: drawDevices(random, size, 1.5 * chance) }
      const elsewhere = { fleet: 3 * size, devices: drawDevices(random, 3 * size, chance * 1.5) }
      if (findPrevalenceSpike({ current, earlier, elsewhere }) !== null) alarms++
    }
    expect([`seed ${seed}`, alarms]).toEqual([`seed ${seed}`, 0])
  })

  it.each([
    [200, 0.01, 0.2],
    [1_000, 0.02, 0.1],
    [60, 0.01, 0.6],
  ])('of %i devices from %f to %f are found nearly always', (fleet, before, after) => {
    const random = createRandom(seed, `power ${fleet}`)
    let found = 0
    for (let look = 0; look < 500; look++) {
      const draw = (count: number, chance: number) => ({
        fleet: count,
        devices: drawDevices(random, count, chance),
      })
      const samples = {
        current: draw(fleet, after),
        earlier: Array.from({ length: 14 }, () => draw(fleet, before)),
        elsewhere: draw(3 * fleet, before),
      }
      if (findPrevalenceSpike(samples) !== null) found++
    }
    expect(found).toBeGreaterThan(450)
  })
})
