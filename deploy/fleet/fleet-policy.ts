/**
 * The policy of a simulated fleet: the default one without what an address weighs. Which networks
 * the stack knows is its own affair, so the fleet could not say what an event must score.
 */
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Policy } from '#shared/core/policies/policy.ts'

const { connection: _, ...serverCategories } = defaultPolicy.serverCategories ?? {}

export const fleetPolicy: Policy = { ...defaultPolicy, name: 'fleet', serverCategories }
