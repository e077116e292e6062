// The pure rules of operators: passwords, lifetimes of sessions, credentials and access.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  emailPattern,
  hashRecoveryCode,
  normalizeEmail,
  tokenPattern,
  toRecoveryCode,
  toToken,
} from '#shared/core/operators/operator-credentials.ts'
import { findPasswordFault, normalizePassword } from '#shared/core/operators/password-rules.ts'
import {
  endpointAccess,
  findAccess,
  findAccessFault,
  includesRole,
  roles,
  seesTenant,
} from '#shared/core/operators/roles.ts'
import {
  isLastUseDue,
  isSessionValid,
  sessionIdleMs,
  sessionMaxMs,
  toSessionEnds,
} from '#shared/core/operators/session-times.ts'
import { loadCommonPasswords } from '../../../services/console/operators/common-passwords.ts'

describe('passwords', () => {
  it('are rejected when they are short, common, simple or made of the account', async () => {
    const isCommon = await loadCommonPasswords()
    const of = { email: 'ada.lovelace@example.com', name: 'Ada Lovelace', isCommon }
    const faults = {
      '': 'must have at least 12 characters',
      elevenchars: 'must have at least 12 characters',
      // Twelve UTF-16 units, six characters.
      '😀😀😀😀😀😀': 'must have at least 12 characters',
      [`${'long '.repeat(60)}`]: 'must have at most 256 characters',
      qwertyuiop123: 'is one of the most common passwords',
      QWERTYUIOP123: 'is one of the most common passwords',
      'Password2024!': 'is one of the most common passwords',
      '!!!dragon12345': 'is one of the most common passwords',
      monkeymonkey: 'is one of the most common passwords',
      Monkeymonkey99: 'is one of the most common passwords',
      administrator1: 'is one of the most common passwords',
      ｐａｓｓｗｏｒｄ２０２４: 'is one of the most common passwords',
      abababababab: 'must have at least five different characters',
      'ada.lovelace': 'must not be made of the email address or the name',
      'Ada.Lovelace@Example.com': 'must not be made of the email address or the name',
      adalovelace1815: 'must not be made of the email address or the name',
      'example.com12': 'must not be made of the email address or the name',
      'a lone \ud800 surrogate': 'must not contain a lone surrogate',
    }
    for (const [password, fault] of Object.entries(faults)) {
      expect(findPasswordFault(password, of), password).toBe(fault)
    }
  })

  it('are accepted when they are long, with any characters', async () => {
    const isCommon = await loadCommonPasswords()
    const of = { email: 'ada@example.com', name: 'Ada', isCommon }
    for (const password of [
      'four words said together',
      'correct horse battery',
      'x7Kq-92mP-v0Zt',
      'ключ от квартиры',
      '月が綺麗ですねと漱石は言ったらしい',
      `${'a long sentence '.repeat(16)}`.slice(0, 256),
    ]) {
      expect(findPasswordFault(password, of), password).toBeNull()
    }
  })

  it('are equal for every Unicode form of a character', () => {
    const typed = 'Zürich im Café'
    expect(normalizePassword(typed.normalize('NFD'))).toBe(normalizePassword(typed))
  })
})

describe('sessions', () => {
  it('are valid for one hour after their last use and twelve hours after their start', () => {
    const times = fc.record({
      createdAtMs: fc.nat(1e12),
      usedMs: fc.nat(sessionMaxMs),
      nowMs: fc.nat(2 * sessionMaxMs),
    })
    fc.assert(
      fc.property(times, ({ createdAtMs, usedMs, nowMs }) => {
        const of = { createdAtMs, lastUsedAtMs: createdAtMs + usedMs }
        const valid = nowMs < sessionMaxMs && nowMs - usedMs < sessionIdleMs
        expect(isSessionValid(of, createdAtMs + nowMs)).toBe(valid)
        const { expiresAtMs, idleExpiresAtMs } = toSessionEnds(of)
        expect(expiresAtMs).toBe(createdAtMs + sessionMaxMs)
        expect(idleExpiresAtMs).toBeLessThanOrEqual(expiresAtMs)
      }),
    )
  })

  it('record their last use once in half a minute', () => {
    const of = { createdAtMs: 0, lastUsedAtMs: 1_000 }
    expect(isLastUseDue(of, 30_999)).toBe(false)
    expect(isLastUseDue(of, 31_000)).toBe(true)
  })
})

describe('credentials', () => {
  it('are random texts of a fixed format', () => {
    const bytes = (length: number) =>
      fc.uint8Array({ minLength: length, maxLength: length }).map((one) => Buffer.from(one))
    fc.assert(
      fc.property(bytes(32), bytes(10), (token, code) => {
        expect(toToken(token)).toMatch(tokenPattern)
        const text = toRecoveryCode(code)
        expect(text).toMatch(/^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){3}$/)
        const typed = ` ${text.toUpperCase().replaceAll('-', '  ')}`
        expect(hashRecoveryCode(typed).equals(hashRecoveryCode(text))).toBe(true)
      }),
    )
    const zero = toRecoveryCode(Buffer.alloc(10))
    const one = toRecoveryCode(Buffer.from([...Array(9).fill(0), 1]))
    expect([zero, one]).toEqual(['0000-0000-0000-0000', '0000-0000-0000-0001'])
  })

  it('normalise any email', () => {
    expect(normalizeEmail(' Ada@Example.COM ')).toBe('ada@example.com')
    for (const email of ['a@b', 'admin@localhost', 'ü@übung.example']) {
      expect(email).toMatch(emailPattern)
    }
    for (const email of ['', 'a', '@b', 'a@', 'a b@c', 'a@b@c', 'a\0@b', 'a@b\ud800']) {
      expect(email).not.toMatch(emailPattern)
    }
  })
})

describe('access', () => {
  const operator = {
    role: 'viewer',
    tenants: 'all',
    stepUpUntilMs: null,
    mustEnrol: false,
  } as const

  it('grows with the role', () => {
    for (const [at, role] of roles.entries()) {
      const included = roles.filter((least) => includesRole(role, least))
      expect(included).toEqual(roles.slice(0, at + 1))
    }
  })

  it('checks the role first, and needs a step-up that has not expired', () => {
    const rotate = findAccess('POST', '/tenants/:tenant_id/rotate')!
    expect(findAccessFault(rotate, { ...operator, stepUpUntilMs: 100 }, 1)).toBe('role')
    const admin = { ...operator, role: 'admin' } as const
    expect(findAccessFault(rotate, admin, 1)).toBe('step_up')
    expect(findAccessFault(rotate, { ...admin, stepUpUntilMs: 100 }, 99)).toBeNull()
    expect(findAccessFault(rotate, { ...admin, stepUpUntilMs: 100 }, 100)).toBe('step_up')
  })

  it('is to signing in and out and setting TOTP up alone until it is set up', () => {
    const admin = { ...operator, role: 'admin', stepUpUntilMs: 100, mustEnrol: true } as const
    const open = Object.entries(endpointAccess).filter(
      ([, access]) => access.who !== 'public' && findAccessFault(access, admin, 1) !== 'enrol',
    )
    expect(open.map(([name]) => name)).toEqual([
      'POST /session/step-up/oidc',
      'POST /session/step-up/oidc/return',
      'GET /session',
      'DELETE /session',
      'POST /session/step-up',
      'POST /session/totp',
      'POST /session/totp/confirm',
    ])
  })

  it('to functions for all tenants needs access to all tenants', () => {
    const create = findAccess('POST', '/tenants')!
    const admin = { ...operator, role: 'admin' } as const
    expect(findAccessFault(create, admin, 1)).toBeNull()
    expect(findAccessFault(create, { ...admin, tenants: ['acme'] }, 1)).toBe('all_tenants')
  })

  it('is denied to routes outside the table, and is equal for HEAD and GET', () => {
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['DELETE', '/tenants'],
      ['GET', ''],
      ['__proto__', ''],
    ] as const) {
      expect(findAccess(method, path)).toBeUndefined()
    }
    expect(findAccess('HEAD', '/tenants')).toBe(endpointAccess['GET /tenants'])
  })

  it('to tenants is by name', () => {
    expect(seesTenant('all', 'acme')).toBe(true)
    expect(seesTenant(['acme'], 'acme')).toBe(true)
    for (const other of ['acme2', 'acm', 'ACME', ''])
      expect(seesTenant(['acme'], other)).toBe(false)
    expect(seesTenant([], 'acme')).toBe(false)
  })
})
