/** Longest side of a sent picture: models do not see more detail. */
const maxSidePx = 1_568;
/** Characters of one picture as a `data:` address. A frame holds 4 MiB. */
export const maxPictureChars = 1_000_000;
export const maxPictures = 3;
const qualities = [0.9, 0.8, 0.6, 0.4] as const;

/** Whether a pasted or dropped file is a picture. */
export const isPicture = (file: File): boolean => /^image\/(?:png|jpeg|gif|webp|bmp|avif)$/.test(file.type);

/** The picture as a `data:` address that fits a message. Rejects for a file of another kind. */
export async function pictureOf(file: Blob): Promise<string> {
  const bitmap = await createImageBitmap(file);
  try {
    for (let side = maxSidePx; side >= 200; side = Math.floor(side * 0.7)) {
      const canvas = drawn(bitmap, side);
      for (const quality of qualities) {
        const address = canvas.toDataURL('image/jpeg', quality);
        if (address.length <= maxPictureChars) return address;
      }
    }
    throw new Error('The picture is too large.');
  } finally {
    bitmap.close();
  }
}

function drawn(bitmap: ImageBitmap, side: number): HTMLCanvasElement {
  const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext('2d');
  if (!context) throw new Error('The browser draws no pictures.');
  // JPEG has no transparency.
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas;
}
