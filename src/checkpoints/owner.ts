/** Owner of changes: a turn, or a restore, of a thread. */
export interface Owner {
  readonly thread: string;
  readonly turn: string;
}

export const ownerOf = ({ thread, turn }: Owner): Owner => ({ thread, turn });

export const ownerKey = ({ thread, turn }: Owner): string => `${thread} ${turn}`;

/** Owner of changes that may be the user's: beside a turn, it makes the change a conflict. */
export const userOwner: Owner = { thread: 'user', turn: '' };
