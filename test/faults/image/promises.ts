/** The promises of the drill: each is printed as soon as it is known. */
import { print } from '../support/drill.ts'

/** Prints a promise; what breaks it goes into the report. */
export type Tell = (promise: string, faults: readonly string[]) => void

/** A promise can have a fault in each of a thousand files. */
const faultsMax = 10

/** @returns `broken`: a line for every promise that `tell` got with faults */
export function createPromises(): { tell: Tell; broken: string[] } {
  const broken: string[] = []
  const tell: Tell = (promise, faults) => {
    print(`${faults.length === 0 ? 'held  ' : 'BROKEN'}  ${promise}`)
    if (faults.length > 0) broken.push(`${promise}: ${faults.slice(0, faultsMax).join('; ')}`)
  }
  return { tell, broken }
}
