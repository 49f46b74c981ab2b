/** Thinking of a Claude model: as long as the model decides, within a budget of tokens, or not at all. */
export type ThinkingStyle = 'adaptive' | 'budget' | 'none';

/**
 * The style of a model by the version in its name, so that later ones work without a list: budgets since 3.7, adaptive
 * thinking since 4.6 (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
 */
export function thinkingStyle(model: string): ThinkingStyle {
  const version = versionOf(model);
  if (version >= 4.06) return 'adaptive';
  return version >= 3.07 ? 'budget' : 'none';
}

/** Version as major + minor / 100 (4.06 for 4.6); 0 for a name without one, to which no thinking is sent. */
function versionOf(model: string): number {
  // `claude-3-7-sonnet-20250219`, `claude-opus-4-7`, `claude-sonnet-5`: dates have eight digits.
  const found = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])/.exec(model);
  return found ? Number(found[1]) + Number(found[2] ?? 0) / 100 : 0;
}
