/** Pictures for models: the bytes decide the type, and nothing is sent that services refuse for its form. */
import type { ContentPart } from './model.ts';
import { pictureType, type Shape, shapeOf } from './picture-formats.ts';

/** A picture for a model. */
export type Picture = Extract<ContentPart, { type: 'image' }>;

/** Larger pictures are not sent to a model. */
export const maxPictureBytes = 10 * 1_048_576;
/** Longest side that every service takes, in pixels. */
const maxSide = 8_000;
/** End of a GIF. */
const gifTrailer = 0x3b;

/** Reason why a picture cannot be sent to a model, in words that follow “it”; undefined without one. */
function problemOf(bytes: Buffer, shape: Shape | undefined): string | undefined {
  if (bytes.length === 0) return 'is empty';
  if (pictureType(bytes) === undefined) return 'is not a PNG, JPEG, GIF or WebP image';
  if (!shape || shape.width === 0 || shape.height === 0) return 'is cut off or damaged';
  if (shape.width > maxSide || shape.height > maxSide) {
    return `has ${shape.width} × ${shape.height} pixels; at most ${maxSide} × ${maxSide} can be shown`;
  }
  if (bytes.length > maxPictureBytes) return `is larger than ${maxPictureBytes / 1_048_576} MiB`;
  return undefined;
}

/** A picture that services take, or the reason why they refuse it. */
export type Inspected = { readonly picture: Picture } | { readonly problem: string };

/** Inspects the bytes, which alone decide the type. Foreign bytes behind the picture and all but the first one of several are left out. */
export function inspectPicture(bytes: Buffer): Inspected {
  const shape = shapeOf(bytes);
  const problem = problemOf(bytes, shape);
  if (problem !== undefined || !shape) return { problem: problem ?? 'is damaged' };
  const shown =
    shape.endOfFirst === undefined
      ? bytes.subarray(0, shape.end)
      : Buffer.concat([bytes.subarray(0, shape.endOfFirst), Buffer.of(gifTrailer)]);
  return { picture: { type: 'image', url: `data:${pictureType(bytes)};base64,${shown.toString('base64')}` } };
}

/** A conversation is sent with every request of a turn: each part is inspected once. */
const inspected = new WeakMap<Picture, ContentPart>();

/** A picture for a model, with the type of its bytes; a line of text in place of a picture that services refuse. */
export function pictureFor(given: Picture): ContentPart {
  const known = inspected.get(given);
  if (known) return known;
  const part = inspect(given);
  inspected.set(given, part);
  if (part.type === 'image') inspected.set(part, part);
  return part;
}

/** Content with each picture as `pictureFor` returns it. */
export const withPictures = (content: readonly ContentPart[]): ContentPart[] =>
  content.map((part) => (part.type === 'image' ? pictureFor(part) : part));

function inspect(given: Picture): ContentPart {
  const { url } = given;
  if (!/^data:/i.test(url)) {
    return /^https?:/i.test(url) && URL.canParse(url) ? given : notShown('has no address that a service can open');
  }
  const comma = url.indexOf(',');
  if (comma < 0 || !/;base64$/i.test(url.slice(0, comma))) return notShown('is not a PNG, JPEG, GIF or WebP image');
  const found = inspectPicture(Buffer.from(url.slice(comma + 1), 'base64'));
  if ('problem' in found) return notShown(found.problem);
  return found.picture.url === url ? given : { ...given, url: found.picture.url };
}

const notShown = (problem: string): ContentPart => ({
  type: 'text',
  text: `[A picture was here that cannot be shown: it ${problem}.]`,
});
