/** A proposal cannot be carried out any more: what it was based on has changed. */
export class BaseChanged extends Error {}
