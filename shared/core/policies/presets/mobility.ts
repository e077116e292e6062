/**
 * "mobility": for rides, delivery and everything else that pays for being somewhere. It is
 * "balanced", and a simulated location, a clone of the app for a second account and tools that
 * accept orders lead to a review by themselves.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from './balanced.ts'

const { emulator, debugger: debug, tamper, ecosystem } = balancedPolicy.categories

export const mobilityPolicy: Policy = {
  ...balancedPolicy,
  name: 'mobility',
  categories: {
    ...balancedPolicy.categories,
    // One courier with several accounts. A dual app of the system is what many phones offer.
    emulator: { ...emulator, signals: { ...emulator.signals, app_cloned: 40 } },
    debugger: {
      ...debug,
      signals: { ...debug.signals, automation_detected: 45, auto_clicker: 40 },
    },
    tamper: {
      ...tamper,
      signals: { ...tamper.signals, device_info_spoofed: 40, time_spoofed: 15 },
    },
    ecosystem: {
      ...ecosystem,
      // With an app beside it that steers the screen it stays below BLOCK: that is a victim.
      cap: 44,
      signals: { ...ecosystem.signals, location_spoofed: 44, mock_location_possible: 12 },
    },
  },
}
