import { Script } from 'node:vm';

/**
 * Time for one comparison. A pattern may need longer than the age of the universe; names of tools are short and come from MCP servers,
 * too. The second limit is for a comparison that only had to wait for a busy processor.
 */
const comparisonMs = [50, 1_000];

const results = new Map<string, boolean>();
/** Comparisons that are remembered. */
const maxResults = 1_000;
const comparison = new Script('new RegExp(pattern).test(name)');

/**
 * Whether a hook is for a tool.
 *
 * @param matcher regular expression for the whole name; undefined: all tools
 * @returns true for a comparison that takes too long: a hook that guards calls must not be passed by
 */
export function matches(matcher: string | undefined, tool: string): boolean {
  if (matcher === undefined || matcher === '' || matcher === '*') return true;
  const key = `${matcher}\0${tool}`;
  const known = results.get(key);
  if (known !== undefined) return known;
  const result = compare(`^(?:${matcher})$`, tool);
  if (results.size >= maxResults) results.clear();
  results.set(key, result);
  return result;
}

function compare(pattern: string, name: string): boolean {
  for (const timeout of comparisonMs) {
    try {
      return comparison.runInNewContext({ pattern, name }, { timeout }) === true;
    } catch {
      // Too slow.
    }
  }
  return true;
}
