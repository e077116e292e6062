// What people read of the admin API: who may call which endpoint.
import { expect, it } from 'vitest'
import { endpointAccess } from '#shared/core/operators/roles.ts'
import { readGenerated } from '../../generate/files.ts'

it('the table of roles has every endpoint with what it needs', () => {
  const lines = readGenerated('services/console/ROLES.md')!.split('\n')
  for (const [name, access] of Object.entries(endpointAccess)) {
    const row = lines.find((line) => line.includes(`\`${name}\``))
    const [, , least, needs] = (row ?? '').split('|').map((cell) => cell.trim())
    expect(least, name).toBe(access.who === 'public' ? 'anyone' : access.who)
    expect(needs?.includes('step-up'), name).toBe('stepUp' in access)
    expect(needs?.includes('all tenants'), name).toBe('allTenants' in access)
  }
})
