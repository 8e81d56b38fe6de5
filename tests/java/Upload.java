// Sends a file with tus-java-client, by the loop of its documentation: java Upload ENDPOINT TOKEN FILE [LEAVE]
// After LEAVE bytes it lets go, with its connection open, and goes on at once from what the gateway says.
import io.tus.java.client.TusClient;
import io.tus.java.client.TusURLMemoryStore;
import io.tus.java.client.TusUpload;
import io.tus.java.client.TusUploader;
import java.io.File;
import java.net.URL;
import java.util.Map;

public class Upload {
    public static void main(String[] given) throws Exception {
        File file = new File(given[2]);
        TusClient client = new TusClient();
        client.setUploadCreationURL(new URL(given[0]));
        client.setHeaders(Map.of("Authorization", "Bearer " + given[1]));
        client.enableResuming(new TusURLMemoryStore());
        if (given.length > 3) {
            send(client, file, Long.parseLong(given[3]));
        }
        System.out.println(send(client, file, Long.MAX_VALUE).getUploadURL());
    }

    private static TusUploader send(TusClient client, File file, long until) throws Exception {
        TusUpload upload = new TusUpload(file);
        upload.setMetadata(Map.of("filename", file.getName()));
        TusUploader uploader = client.resumeOrCreateUpload(upload);
        uploader.setChunkSize(10_000);
        while (uploader.uploadChunk() > -1) {
            if (uploader.getOffset() >= until) {
                return uploader;
            }
        }
        uploader.finish();
        return uploader;
    }
}
