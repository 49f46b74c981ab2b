/** A fence of at least three back-ticks that no run of back-ticks in the text closes (CommonMark, section 4.5). */
export const backTickFence = (text: string): string => '`'.repeat(Math.max(3, longestBackTicks(text) + 1));

/** Length of the longest run of back-ticks. A text may have more runs than a call may have arguments. */
export function longestBackTicks(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}
