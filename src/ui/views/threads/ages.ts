const dayMs = 86_400_000;

/** Beginning of the local day, in milliseconds since the epoch. */
const dayOf = (at: number): number => new Date(at).setHours(0, 0, 0, 0);

/** `Today`, `Yesterday`, `This week` or `Earlier`. */
function ageOf(at: number, now: number): string {
  // A day on which the clock changes has 23 or 25 hours.
  const days = Math.round((dayOf(now) - dayOf(at)) / dayMs);
  if (days <= 0) return 'Today';
  if (days === 1) return 'Yesterday';
  return days < 7 ? 'This week' : 'Earlier';
}

/** Groups entries by age, and keeps their order. @param now milliseconds since the epoch */
export function ageGroups<T>(
  entries: readonly T[],
  atOf: (entry: T) => number,
  now: number,
): readonly (readonly [title: string, entries: readonly T[]])[] {
  return [...Map.groupBy(entries, (entry) => ageOf(atOf(entry), now))];
}
