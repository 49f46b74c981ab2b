import type { CatalogueModel } from './catalogue.ts';

type Family = Omit<CatalogueModel, 'id' | 'price'>;

const upToHigh = ['low', 'medium', 'high'] as const;

/**
 * Facts by the name of a family, for models newer than the catalogue. Versions are compared as numbers, so that later ones are
 * known without a list. Sources: https://platform.openai.com/docs/models, https://platform.claude.com/docs/en/about-claude/models,
 * https://ai.google.dev/gemini-api/docs/models.
 */
export function familyOf(model: string): Family | undefined {
  const name = model.slice(model.lastIndexOf('/') + 1);
  const gpt = version(/^gpt-(\d+)(?:\.(\d+))?/, name);
  if (gpt >= 5) return { contextWindow: 272_000, maxOutputTokens: 128_000, efforts: [...upToHigh], images: true };
  if (/^o\d/.test(name))
    return { contextWindow: 200_000, maxOutputTokens: 100_000, efforts: [...upToHigh], images: true };
  if (/^claude-/.test(name)) {
    return { contextWindow: 200_000, maxOutputTokens: 64_000, efforts: ['none', ...upToHigh], images: true };
  }
  if (version(/^gemini-(\d+)(?:\.(\d+))?/, name) >= 2.5) {
    return { contextWindow: 1_048_576, maxOutputTokens: 65_536, efforts: [...upToHigh], images: true };
  }
  return undefined;
}

/** Version in a name as a number; 0 without one. */
function version(pattern: RegExp, name: string): number {
  const found = pattern.exec(name);
  return found ? Number(`${found[1]}.${found[2] ?? 0}`) : 0;
}
