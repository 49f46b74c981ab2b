/** True when JSON is nested more than `depth` levels deep: recursive writers would overflow the stack. */
export function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depth === 0) return true;
  const inner = Array.isArray(value) ? value : Object.values(value);
  return inner.some((each) => isDeeperThan(each, depth - 1));
}
