/**
 * Cuts every text in the value to `limit` UTF-16 units, and adds the number of omitted units. Returns a value that needs no
 * cutting unchanged, not copied.
 */
export function cutTexts<T>(value: T, limit: number): T {
  return cut(value, limit) as T;
}

function cut(value: unknown, limit: number): unknown {
  if (typeof value === 'string') return value.length > limit ? cutText(value, limit) : value;
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? cutList(value, limit) : cutRecord(value, limit);
}

function cutText(text: string, limit: number): string {
  // Half a character would be none.
  const last = text.charCodeAt(limit - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit;
  return `${text.slice(0, end)}… [${text.length - end} characters left out]`;
}

function cutList(list: readonly unknown[], limit: number): readonly unknown[] {
  const shorter = list.map((each) => cut(each, limit));
  return shorter.every((each, index) => each === list[index]) ? list : shorter;
}

function cutRecord(record: object, limit: number): object {
  let shorter: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(record)) {
    const short = cut(value, limit);
    if (short === value) continue;
    shorter ??= { ...record };
    shorter[key] = short;
  }
  return shorter ?? record;
}
