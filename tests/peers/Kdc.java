import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/**
 * A key distribution centre on the loopback address.
 *
 * <p>Usage: {@code Kdc FOLDER PORT REALM PRINCIPAL...}: a keytab FOLDER/NAME.keytab for each (NAME is its part before
 * the slash), and for those of people a ticket cache FOLDER/NAME.ccache, then FOLDER/ready; it serves until it is ended.
 */
public final class Kdc {
  public static void main(String[] args) throws Exception {
    SimpleKdcServer server = new SimpleKdcServer();
    server.setWorkDir(new File(args[0]));
    server.setKdcRealm(args[2]);
    server.setKdcHost("127.0.0.1");
    server.setKdcTcpPort(Integer.parseInt(args[1]));
    server.setAllowUdp(false);
    server.init();
    for (int i = 3; i < args.length; i++) {
      server.createPrincipal(args[i]);
      server.exportPrincipal(args[i], new File(args[0], args[i].split("/")[0] + ".keytab"));
    }
    server.start();
    for (int i = 3; i < args.length; i++) {
      if (!args[i].contains("/")) {
        File keytab = new File(args[0], args[i] + ".keytab");
        server.getKrbClient().storeTicket(
            server.getKrbClient().requestTgt(args[i], keytab), new File(args[0], args[i] + ".ccache"));
      }
    }
    Files.createFile(Path.of(args[0], "ready"));
    // Standard input ends when whoever started this does, however that came about.
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
