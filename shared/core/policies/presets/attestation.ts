/**
 * What "balanced" makes of attestation: server signals of phones and apps that cannot be what they
 * say. Clients that register no installs score nothing here.
 */
import type { CategoryPolicy } from '#shared/core/policies/policy.ts'

export const balancedAttestation: CategoryPolicy = {
  cap: 80,
  signals: {
    install_key: 0,
    verified: 0,
    // One fact of a phone whose owner chose its system: hardware says so. A few points, which
    // never turn root alone, 70 at most, to BLOCK. Evidence that no hardware made has a floor.
    rejected: 4,
    hardware_backed: { whenFalse: 4 },
    bootloader_unlocked: 4,
    boot_unverified: 4,
    // Every client of before has no token, and a phone that was off for a month an old one.
    missing: 0,
    stale: 0,
    shared_key: 60,
    // The phones of a model whose factory lost its key have it too.
    revoked: 45,
    // More than NEW_DEVICE, so that a copied id is never better than one of its own.
    device_id_shared: 12,
    // Below a review: requests overtake each other, and their answers get lost.
    counter_reused: 10,
    replayed: 30,
    app_unknown: 60,
    debug_build: 20,
    os_patch_age_days: 0,
    // As what the client says of them, which scores nothing beside these.
    pi_device: {
      values: { MEETS_VIRTUAL_INTEGRITY: 30, MEETS_BASIC_INTEGRITY: 15, '(empty)': 35 },
      unless: ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'],
    },
    pi_app: { values: { UNRECOGNIZED_VERSION: 60 } },
    pi_licensing: { values: { UNLICENSED: 15 } },
    play_protect: { values: { HIGH_RISK: 30, MEDIUM_RISK: 15 } },
    app_access_risk: {
      values: { UNKNOWN_CONTROLLING: 30, UNKNOWN_CAPTURING: 15, UNKNOWN_OVERLAYS: 15 },
    },
    claim_contradicted: 45,
  },
  groups: [
    {
      cap: 4,
      signals: ['rejected', 'hardware_backed', 'bootloader_unlocked', 'boot_unverified'],
    },
    // A leaked key is found by its use first, and revoked then.
    { cap: 60, signals: ['shared_key', 'revoked'] },
  ],
}
