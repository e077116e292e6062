/** The operator who is signed in, for pages; the server decides what they may do. */
import { createContext, useContext } from 'react'
import { mayAs, type Role, type SignedIn } from '../api/session.ts'

export const OperatorContext = createContext<SignedIn | null>(null)

export function useSignedIn(): SignedIn {
  const signedIn = useContext(OperatorContext)
  if (signedIn === null) throw new Error('this page is not inside the shell')
  return signedIn
}

/** Whether to offer what needs a role. */
export const useMay = (needed: Role): boolean => mayAs(useSignedIn().operator.role, needed)
