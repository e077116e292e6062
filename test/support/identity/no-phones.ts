/** For tests that are about no phone: nothing is read, and no install is on one. */
import type { Phones } from '#shared/io/identity/phones.ts'

export const noPhones: Phones = {
  findFacts: async (installs) => installs.map(() => null),
  findLinks: async (installs) => installs.map(() => null),
  insertLinks: async () => undefined,
  forget: () => undefined,
}
