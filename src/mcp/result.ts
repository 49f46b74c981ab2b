import { pictureFor, type ToolResult } from '../agent/index.ts';
import { defaults } from '../protocol/index.ts';
import type { CallToolResult, ContentBlock } from './library.ts';

type Image = NonNullable<ToolResult['images']>[number];

/** Result of a tool for the model: text first, images beside it, the rest in words. `clean` removes secrets. */
export function toToolResult(result: CallToolResult, clean: (text: string) => string): ToolResult {
  const images: Image[] = [];
  let imageChars = 0;
  const takeImage = (data: string, mimeType: string): string | undefined => {
    const part = pictureFor({ type: 'image', url: `data:${mimeType};base64,${data}` });
    if (part.type === 'text') return part.text;
    if (images.length >= defaults.mcp.images || imageChars + data.length > defaults.mcp.imageChars) {
      return `[image, ${mimeType}: left out, the result has too many or too large images]`;
    }
    imageChars += data.length;
    images.push(part);
    return undefined;
  };
  const texts = result.content.map((block) => textOf(block, takeImage)).filter((text) => text !== undefined);
  const hasText = texts.some((text) => text !== '');
  if (!hasText && result.structuredContent !== undefined) texts.push(JSON.stringify(result.structuredContent, null, 2));
  const text = bounded(clean(texts.join('\n').toWellFormed()));
  return {
    text: text === '' && images.length === 0 ? '(The tool answered with nothing.)' : text,
    isError: result.isError === true,
    ...(images.length > 0 && { images }),
  };
}

/** The words of one block; undefined when it is an image that `takeImage` has taken. */
function textOf(
  block: ContentBlock,
  takeImage: (data: string, mimeType: string) => string | undefined,
): string | undefined {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
      return takeImage(block.data, block.mimeType);
    case 'audio':
      return `[audio, ${block.mimeType}, ${bytesOf(block.data)} bytes: cannot be played to you]`;
    case 'resource_link':
      return `[resource ${block.uri}${block.mimeType ? `, ${block.mimeType}` : ''}: ${block.description ?? block.name}]`;
    case 'resource':
      return resourceText(block.resource, takeImage);
    default:
      return `[content of an unknown kind: ${String((block as { readonly type: unknown }).type)}]`;
  }
}

function resourceText(
  resource: (ContentBlock & { type: 'resource' })['resource'],
  takeImage: (data: string, mimeType: string) => string | undefined,
): string | undefined {
  const mimeType = resource.mimeType ?? 'application/octet-stream';
  if ('text' in resource) return `[resource ${resource.uri}]\n${resource.text}`;
  if (mimeType.startsWith('image/')) return takeImage(resource.blob, mimeType);
  return `[resource ${resource.uri}, ${mimeType}, ${bytesOf(resource.blob)} bytes of binary data: not shown]`;
}

const bytesOf = (base64: string): number => Buffer.byteLength(base64, 'base64');

/** At most `defaults.mcp.resultChars`, with a notice of what to do about it. */
function bounded(text: string): string {
  if (text.length <= defaults.mcp.resultChars) return text;
  const kept = text.slice(0, defaults.mcp.resultChars).replace(/[\uD800-\uDBFF]$/, '');
  const left = text.length - kept.length;
  return `${kept}\n[The first ${kept.length} characters of the result; ${left} more were left out. Ask for less: a filter, a range, a smaller page.]`;
}
