// The delivery process' cache of tenants: bounded, and no tenant evicts another.
import { expect, test } from 'vitest'
import { breakerAttemptsMin, webhooksCachedMax } from '#shared/core/base/limits/deliveries.ts'
import { createCircuitBreaker } from '../../../services/delivery/send/circuit-breaker.ts'
import { createFindTarget } from '../../../services/delivery/send/webhook-targets.ts'

const failure = { ok: false, probe: false, atMs: 0 }

const many = webhooksCachedMax + 100

test('a tenant that changes its URL repeatedly evicts no other tenant from the cache', () => {
  const breaker = createCircuitBreaker()
  const findTarget = createFindTarget({ allowPrivate: false })
  const url = 'https://receiver.example/'
  const target = findTarget('acme', url, 'live')
  for (let n = 1; n < breakerAttemptsMin; n++) {
    expect(breaker.record('acme', url, failure)).toBe(false)
  }
  for (let n = 0; n < many; n++) {
    breaker.record('rival', `${url}${n}`, failure)
    findTarget('rival', `${url}${n}`, 'live')
  }
  expect(findTarget('acme', url, 'live')).toBe(target)
  expect(breaker.record('acme', url, failure)).toBe(true)
})

test('a webhook that fails now is not evicted by others that failed before', () => {
  const breaker = createCircuitBreaker()
  for (let n = 1; n < breakerAttemptsMin; n++) {
    breaker.record('acme', 'https://receiver.example/', failure)
    for (let m = 0; m < 1_000; m++)
      breaker.record(`tenant-${n}-${m}`, 'https://x.example/', failure)
  }
  expect(breaker.record('acme', 'https://receiver.example/', failure)).toBe(true)
})

test('a changed URL or environment is another target with its own record of attempts', () => {
  const breaker = createCircuitBreaker()
  const findTarget = createFindTarget({ allowPrivate: false })
  const first = findTarget('acme', 'https://a.example/', 'live')
  expect(findTarget('acme', 'https://b.example/', 'live')).not.toBe(first)
  expect(findTarget('acme', 'https://b.example/', 'sandbox').rules.environment).toBe('sandbox')
  for (let n = 1; n < breakerAttemptsMin; n++) breaker.record('acme', 'https://a.example/', failure)
  expect(breaker.record('acme', 'https://b.example/', failure)).toBe(false)
})
